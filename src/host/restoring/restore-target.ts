/**
 * Where a restore may write (contract 7.5): below the restore root, through no link, where nothing
 * is yet, and nowhere near backups or the storage of a running node.
 *
 * Invariants: 1. The path is judged as text first, component by component; nothing of it is
 * resolved (P-139). 2. What the text allows is looked at on the disk by a port that follows no
 * link, and looked at again right before the target gets its name.
 */
import { failure, ok } from "../../base/result.js";
import type { ArchivePort } from "../../ports.js";
import { type RestoreDone, type RestoreResult, conflict } from "./restore-faults.js";
import type { RestoreSettings } from "./restore-ports.js";

/** As long as a path may be for the system, with what is put behind it. */
const PATH_MAX_UNITS = 4000;
const NAME_MAX_UNITS = 200;

function isInside(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory === "/" ? "/" : `${directory}/`);
}

/** Either of them is in the other one, or they are the same, whatever case means to the disk. */
function overlap(a: string, b: string): boolean {
  const [first, second] = [a.toLowerCase(), b.toLowerCase()];
  return isInside(first, second) || isInside(second, first);
}

/** The path of the target below the restore root. */
export function targetBelow(targetDir: string, settings: RestoreSettings): RestoreResult<string> {
  const { restoreRoot, realRestoreRoot, occupied } = settings;
  const prefix = restoreRoot === "/" ? "/" : `${restoreRoot}/`;
  if (!targetDir.startsWith(prefix) || targetDir.length > PATH_MAX_UNITS) {
    return conflict("The target directory does not lie below the restore root.");
  }
  const below = targetDir.slice(prefix.length).replace(/\/$/, "");
  const names = below.split("/");
  const isPlain = (name: string): boolean =>
    name !== "" && name !== "." && name !== ".." && !name.includes("\0");
  if (!names.every(isPlain)) {
    return conflict("The target directory is not written as plain names below the restore root.");
  }
  if (names.some((name) => name.length > NAME_MAX_UNITS)) {
    return conflict("A name of the target directory is too long.");
  }
  const real = `${realRestoreRoot === "/" ? "" : realRestoreRoot}/${below}`;
  for (const directory of occupied) {
    if (overlap(`${prefix}${below}`, directory) || overlap(real, directory)) {
      return conflict("The target directory overlaps backups, or the storage of this node.");
    }
  }
  return ok(below);
}

export function parentOf(path: string): string {
  return path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "";
}

/** Looks at every component of the path from the root down: directories, and nothing at its end. */
export function checkTarget(targets: ArchivePort, below: string, done: RestoreDone<null>): void {
  const names = below.split("/");
  const next = (count: number): void => {
    const path = names.slice(0, count).join("/");
    targets.examine(path, (found) => {
      if (count === names.length) {
        if (found.ok) return done(conflict("The target directory exists."));
        if (found.code === "missing") return done(ok(null));
      }
      if (!found.ok && found.code === "missing") {
        const what = count === 0 ? "The restore root" : "The parent of the target directory";
        return done(conflict(`${what} does not exist.`));
      }
      if (!found.ok && found.code !== "link") return done(failure("IoError", found.message));
      if (!found.ok || found.value.kind !== "directory") {
        return done(conflict("A component of the target directory is a link or no directory."));
      }
      next(count + 1);
    });
  };
  next(0);
}
