/**
 * Loaded into a server process before its own program (`--import`): every opening of something in a directory of backups
 * takes a while, `?ms=` in its URL, so that each step of a backup can be seen from outside.
 */
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";

const slowMs = Number(new URL(import.meta.url).searchParams.get("ms") ?? 25);
const open = fs.open as (...given: unknown[]) => void;

fs.open = ((...given: unknown[]) => {
  const [path] = given;
  if (typeof path !== "string" || !path.includes("/backups/")) return open(...given);
  setTimeout(() => open(...given), slowMs);
}) as typeof fs.open;
syncBuiltinESMExports();
