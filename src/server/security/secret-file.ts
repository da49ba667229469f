/**
 * Files that hold something secret, or decide who may do what: tokens, the peers' secret, the
 * key of manifests.
 *
 * Invariants: 1. What is read is the file that was checked. 2. Nothing that everybody may read or
 * write, or that its group may write, is taken; a group may read that is one of this process's own,
 * which is how orchestrators mount secrets.
 */
import { closeSync, fstatSync, openSync, readFileSync } from "node:fs";
import { failure, ok, type Result } from "../../base/result.js";

const GROUP_READS = 0o040;
const GROUP_WRITES = 0o020;
const OTHERS_USE = 0o006;

function ownGroups(): readonly number[] {
  return [...(process.getgroups?.() ?? []), process.getegid?.() ?? -1];
}

/** What is wrong with a file of this mode and group; null when nothing is. */
export function permissionMistake(
  mode: number,
  groupId: number,
  groups: readonly number[],
): string | null {
  if ((mode & OTHERS_USE) !== 0) return "everybody may read or write it; chmod 600 it";
  if ((mode & GROUP_WRITES) !== 0) return "its group may write it; chmod 600 or 640 it";
  if ((mode & GROUP_READS) !== 0 && !groups.includes(groupId)) {
    return `group ${groupId}, which is none of this process, may read it; chmod 600 it`;
  }
  return null;
}

/** The text of the file. `what` names its use in messages. */
export function readSecretFile(path: string, what: string): Result<string, "usage"> {
  const bytes = readSecretBytes(path, what);
  return bytes.ok ? ok(bytes.value.toString("utf8")) : bytes;
}

/** The bytes of the file. */
export function readSecretBytes(path: string, what: string): Result<Buffer, "usage"> {
  let descriptor = -1;
  try {
    descriptor = openSync(path, "r");
    const { mode, gid } = fstatSync(descriptor);
    const mistake = permissionMistake(mode, gid, ownGroups());
    if (mistake !== null) return failure("usage", `${what} ${path}: ${mistake}`);
    return ok(readFileSync(descriptor));
  } catch (error) {
    return failure("usage", `cannot read ${what} ${path}: ${(error as Error).message}`);
  } finally {
    if (descriptor >= 0) closeSync(descriptor);
  }
}
