/** What an entry of a log has to do with levels, read as a node of the world reads it. */
import { decodeEntry } from "../../../src/machine/commands/codec.js";
import { EntryKindCode } from "../../../src/host/replication/config-entries.js";
import type { LogEntry } from "../../../src/ports.js";
import type { SeenEntry } from "../../judge/checkers/levels/permitted-entries.js";
import { RAISED_PERMITS } from "../members/upgradeplan.js";

/** Null: it is no entry of commands. */
export function seenEntry(group: number, entry: LogEntry): SeenEntry | null {
  const { index, kind, payload } = entry;
  if (kind !== EntryKindCode.normal || payload.length === 0) return null;
  const decoded = decodeEntry(payload);
  if (!decoded.ok) return null;
  let [needs, sets, raises] = [1, 0, 0];
  for (const command of decoded.value.commands) {
    needs = Math.max(needs, RAISED_PERMITS.commands[command.kind] ?? 1);
    if (command.kind === "set-level") sets = Math.max(sets, command.level);
    if (command.kind === "raise-level") raises = Math.max(raises, command.to);
    if (command.kind === "found-cluster") raises = Math.max(raises, command.level);
  }
  return { group, index, needs, sets, raises };
}
