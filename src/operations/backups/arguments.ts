/**
 * The arguments of backup calls: what is wrong with them, and the ids in them.
 *
 * Pure. Invariant: an id is asked for only after its request was found to be good.
 */
import type { RequestNamed } from "../../api/calls.js";
import { idOfUuid } from "../../backup/names.js";
import { assert } from "../../base/assert.js";

type Leaf = Pick<RequestNamed<"backups.chain">, "leafBackupId">;
type Parent = RequestNamed<"backups.incremental">;

export function parentFault({ parentBackupId }: Parent): string | null {
  return idOfUuid(parentBackupId) === null ? "The parent backup id is not a UUID." : null;
}

export function chainFault({ leafBackupId }: Leaf): string | null {
  return idOfUuid(leafBackupId) === null ? "The leaf backup id is not a UUID." : null;
}

export function restoreFault(request: RequestNamed<"backups.restore">): string | null {
  const { targetDir, targetTimeMs, sequenceSkip } = request;
  const fault = chainFault(request);
  if (fault !== null) return fault;
  if (targetDir === "") return "The target directory is empty.";
  if (!targetDir.startsWith("/")) return "The target directory is not absolute.";
  if (targetDir.includes("\0")) return "The target directory has a zero byte in it.";
  if (targetTimeMs < 0n) return "The target time is negative.";
  return sequenceSkip < 0n ? "The sequence skip is negative." : null;
}

function idOf(uuid: string): string {
  const id = idOfUuid(uuid);
  assert(id !== null, "the id was checked");
  return id;
}

export function parentId({ parentBackupId }: Parent): string {
  return idOf(parentBackupId);
}

export function chainId({ leafBackupId }: Leaf): string {
  return idOf(leafBackupId);
}
