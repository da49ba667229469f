/** Loaded before the server (`--import`): every write to its disk takes as long as on one that is about to die. */
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";

const WRITE_MS = 1100;

type Call = (...words: unknown[]) => void;

for (const name of ["write", "writev"] as const) {
  const real = fs[name] as unknown as Call;
  const slow: Call = (...words) => {
    const done = words.pop() as Call;
    real(...words, (...end: unknown[]) => void setTimeout(() => done(...end), WRITE_MS));
  };
  Object.assign(fs, { [name]: slow });
}
syncBuiltinESMExports();
