/**
 * A list of events, replayed and told in words: what happened, and what became of the node.
 */
import type { Message } from "../../../../src/raft/state/types.js";
import type { Event } from "./events.js";
import { calm, type Exploration } from "./explore.js";
import type { Library } from "./node.js";
import { World, type Settings } from "./world.js";

function told(message: Message): string {
  const { kind, from, to, term, index, logTerm, commit, reject, entries, context } = message;
  const parts = [`${kind} ${from}->${to} term ${term}`];
  if (index > 0) parts.push(`at ${logTerm}/${index}`);
  if (entries !== null) {
    const runs = entries.termRuns.map((run) => `${run.term}/${run.first}`).join(" ");
    parts.push(`entries ${runs} to ${entries.last}`);
  }
  if (commit > 0) parts.push(`commit ${commit}`);
  if (context > 0) parts.push(`context ${context}`);
  if (message.snapshot !== null) parts.push(`snapshot ${message.snapshot.index}`);
  return parts.join(", ") + (reject ? ", refused" : "");
}

function stateOf(world: World, id: number): string {
  const node = world.nodes[id - 1];
  if (node === undefined) return "";
  const { core, log, disk, commit, applied, writes } = node;
  const { voters, votersOutgoing, learners } = core.membership;
  const members = `${voters.join(",")}&${votersOutgoing.join(",")}+${learners.join(",")}`;
  const last = `last ${log.lastTerm}/${log.last} disk ${disk.lastTerm}/${disk.last}`;
  const role = `${core.role} term ${core.term} vote ${core.vote}`;
  return `${id}: ${role} ${last} commit ${commit} applied ${applied.index} (${members}) writes ${writes.length}`;
}

function describe(world: World, { kind, node, at }: Event): string {
  if (kind === "deliver" || kind === "duplicate" || kind === "drop") {
    const message = world.network[at]?.message;
    return `${kind} ${message === undefined ? "nothing" : told(message)}`;
  }
  return `${kind} on ${node}${at === 0 ? "" : ` (${at})`}`;
}

/**
 * The trace as text, one event a line, with the state of the node after it; ends at what breaks.
 */
export function replayInWords(
  library: Library,
  settings: Settings,
  events: readonly Event[],
  exploration?: Exploration,
): string {
  const world = new World(library, settings);
  for (const event of exploration?.prefix ?? []) {
    if (event.at < 0) calm(world);
    else world.perform(event);
  }
  const lines: string[] = [];
  for (const event of events) {
    const what = describe(world, event);
    try {
      world.perform(event);
    } catch (error) {
      lines.push(what, `  ${error instanceof Error ? error.message : String(error)}`);
      return lines.join("\n");
    }
    lines.push(`${what.padEnd(60)} | ${stateOf(world, event.node)}`);
  }
  return lines.join("\n");
}
