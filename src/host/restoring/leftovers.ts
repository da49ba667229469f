/**
 * What restores left beside a target that died with their machine: nobody else removes it, since
 * whoever would have is dead too.
 *
 * Invariants: 1. Only a directory with the name of a staging directory goes, and only when nothing
 * in it was written for as long as an orphan is left alone: whoever restores writes. 2. The age is
 * by the clock of the file system. 3. No fault here ends the restore that looks.
 */
import { isStaging } from "../../backup/names.js";
import { ORPHAN_AGE_MS } from "../../base/limits.js";
import type { ArchiveEntry, ArchivePort } from "../../ports.js";

/** Looked at in one restore. */
const LEFTOVERS_MAX = 64;
/** A staging directory has its revision, its store, and the files of that. */
const DEPTH_MAX = 3;

/** Last change of anything in a directory; Infinity where that cannot be told. */
function newestIn(
  targets: ArchivePort,
  path: string,
  depth: number,
  done: (newestMs: number) => void,
): void {
  targets.list(path, (listed) => {
    if (!listed.ok) return done(Infinity);
    const { value: entries } = listed;
    let newestMs = -Infinity;
    const next = (at: number): void => {
      const entry = entries[at];
      if (entry === undefined) return done(newestMs);
      newestMs = Math.max(newestMs, entry.modifiedMs);
      if (entry.kind !== "directory") return next(at + 1);
      if (depth === DEPTH_MAX) return done(Infinity);
      newestIn(targets, `${path}/${entry.name}`, depth + 1, (belowMs) => {
        newestMs = Math.max(newestMs, belowMs);
        next(at + 1);
      });
    };
    next(0);
  });
}

/** `parent`: where the targets lie; `own`: the staging directory of this restore, made just now. */
export function removeLeftovers(
  targets: ArchivePort,
  parent: string,
  own: string,
  removed: (name: string) => void,
  done: () => void,
): void {
  const pathOf = (name: string): string => (parent === "" ? name : `${parent}/${name}`);
  const look = (found: readonly ArchiveEntry[], nowMs: number): void => {
    const next = (at: number): void => {
      const entry = found[at];
      if (entry === undefined || at === LEFTOVERS_MAX) return done();
      const path = pathOf(entry.name);
      newestIn(targets, path, 1, (belowMs) => {
        const newestMs = Math.max(entry.modifiedMs, belowMs);
        if (nowMs - newestMs <= ORPHAN_AGE_MS) return next(at + 1);
        targets.removeTree(path, (gone) => {
          if (gone.ok) removed(entry.name);
          next(at + 1);
        });
      });
    };
    next(0);
  };
  targets.examine(own, (made) => {
    if (!made.ok) return done();
    targets.list(parent, (listed) => {
      if (!listed.ok) return done();
      const isLeft = ({ name, kind }: ArchiveEntry): boolean =>
        kind === "directory" && isStaging(name) && pathOf(name) !== own;
      look(listed.value.filter(isLeft), made.value.modifiedMs);
    });
  });
}
