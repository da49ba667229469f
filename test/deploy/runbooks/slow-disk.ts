/** Loaded before the server (`--import`): every write of its log takes as long as on a disk that is about to die. */
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";

const WRITE_MS = 1100;
/** New segments are filled with slices of this size, which nobody waits for: a start is to take seconds, not minutes. */
const FILLING_BYTES = 1024 * 1024;

type Call = (...words: unknown[]) => void;

const real = fs.write as unknown as Call;
const slow: Call = (...words) => {
  const [, , , sizeBytes] = words;
  if (Number(sizeBytes) >= FILLING_BYTES) return real(...words);
  const done = words.pop() as Call;
  real(...words, (...end: unknown[]) => void setTimeout(() => done(...end), WRITE_MS));
};
Object.assign(fs, { write: slow });
syncBuiltinESMExports();
