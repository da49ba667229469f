/**
 * `propose-conf-change`: a membership change in the notation of change.ts.
 */
import type { ConfigChange } from "../../src/raft/state/types.js";
import { allowOptions, numberAt, option, parseTruth } from "./arguments.js";
import { parseOperations } from "./change.js";
import { CommandError, type Environment } from "./environment.js";
import type { Command } from "./scenario.js";

function parseTransition(text: string): ConfigChange["transition"] {
  if (text === "auto" || text === "implicit" || text === "explicit") return text;
  throw new CommandError(`unknown transition ${text}`);
}

export function proposeChange(environment: Environment, command: Command): void {
  allowOptions(command, ["v1", "transition"]);
  const node = environment.node(numberAt(command, 0));
  const first = parseTruth(option(command, "v1") ?? "false");
  const transition = parseTransition(option(command, "transition") ?? "auto");
  const operations = parseOperations(command.input);
  if (first && (operations.length !== 1 || transition !== "auto")) {
    throw new CommandError("v1 conf change can only have one operation and no transition");
  }
  const result = node.proposeChange({ version: first ? 1 : 2, transition, operations });
  if (!result.ok) throw new CommandError("raft proposal dropped");
}
