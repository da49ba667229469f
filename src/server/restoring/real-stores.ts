/**
 * State stores of storage directories that are being made, on the real disk.
 *
 * Invariants: 1. A store is opened where the archive below the restore root sees directories all
 * the way, and no link (P-139). 2. An input/output fault ends the process of the restore.
 */
import { PROGRAM } from "../../base/levels.js";
import { failure, ok } from "../../base/result.js";
import { RealFiles } from "../../disk/files.js";
import { LevelFile } from "../../disk/level-file.js";
import { openStore } from "../../disk/store/store.js";
import type { RestoreStores } from "../../host/restoring/restore-ports.js";
import type { ArchivePort, FatalPort, LoggerPort } from "../../ports.js";
import { systemTimers } from "../../sys.js";

/** First size of the map of a store; it doubles when it is full. */
const FIRST_MAP_BYTES = 1024 * 1024 * 1024;

export function realStores(
  root: string,
  targets: ArchivePort,
  maxBytes: number,
  ports: { readonly logger: LoggerPort; readonly fatal: FatalPort },
): RestoreStores {
  return {
    open(path, done) {
      targets.list(path, (there) => {
        if (!there.ok) return done(failure("IoError", there.message));
        const options = { path: `${root}/${path}`, maxBytes, mapBytes: FIRST_MAP_BYTES };
        const store = openStore(options, { timers: systemTimers, ...ports });
        if (!store.ok) return done(failure("IoError", "The state store cannot be opened."));
        targets.list(path, (found) => {
          const isPlain = found.ok && found.value.every(({ kind }) => kind === "file");
          if (isPlain) return done(ok(store.value));
          const what = `"${path}" is not what it was when the state store was opened.`;
          store.value.close(() => done(failure("IoError", what)));
        });
      });
    },
    noteLevel(path, level, done) {
      LevelFile.open(`${root}/${path}`, PROGRAM, new RealFiles(), true, (opened) => {
        if (!opened.ok) return done(failure("IoError", "The level cannot be noted."));
        if (opened.value.level >= level) return done(ok(null));
        opened.value.raise(level, (raised) => {
          done(raised.ok ? raised : failure("IoError", "The level cannot be noted."));
        });
      });
    },
  };
}
