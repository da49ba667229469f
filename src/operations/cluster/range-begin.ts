/**
 * The begin of a move of a key range, proposed where the meta partition is led.
 *
 * Invariants: 1. What is told was decided in apply, or is certain not to have been proposed. 2. A
 * repeat of a command whose move runs finds that move.
 */
import { textSizeBytes } from "../../base/bytes.js";
import type { BeginMoveCommand, MetaStatus, RangeMove } from "../../machine/commands/command.js";
import type { Serving } from "../serving/serving.js";

export type BeginResult =
  | { readonly kind: "begun"; readonly move: RangeMove }
  /** Apply refused it. */
  | { readonly kind: "refused"; readonly status: MetaStatus }
  /** It was not proposed. */
  | { readonly kind: "not-leader" }
  | { readonly kind: "not-at-level" }
  /** It may have begun. */
  | { readonly kind: "open" };

/** Upper bound of the command beside its names (bytes). */
const COMMAND_BYTES = 64;

export function beginMove(
  serving: Serving,
  command: BeginMoveCommand,
  deadlineMs: number,
  then: (result: BeginResult) => void,
): void {
  const { keySpace, startKey, endKey } = command;
  const names = [keySpace, startKey ?? "", endKey ?? ""];
  const sizeBytes = names.reduce((sum, name) => sum + textSizeBytes(name), COMMAND_BYTES);
  const group = serving.node.metaGroup();
  group.propose(command, sizeBytes, deadlineMs, (result) => {
    if (result.status === "refused" && result.reason === "not-leader") {
      return then({ kind: "not-leader" });
    }
    if (result.status === "refused" && result.reason === "not-available-at-level") {
      return then({ kind: "not-at-level" });
    }
    if (result.status !== "applied" || result.outcome.kind !== "meta") {
      return then({ kind: "open" });
    }
    const { status, generation } = result.outcome;
    if (status !== "done" && status !== "unchanged") return then({ kind: "refused", status });
    const move = group.machine.meta.move(keySpace);
    then(move?.moveId === generation ? { kind: "begun", move } : { kind: "open" });
  });
}
