/**
 * `--force-new-cluster <cluster id> [--yes]`: an act of its own, beside the flags of the node whose
 * directory it is about.
 *
 * Invariant: it is never taken from the environment, where it would be done again at every start.
 */
import { type Result, failure, ok } from "../../base/result.js";
import type { ServerConfig } from "./server-config.js";

const FLAG = "--force-new-cluster";
const YES = "--yes";

export interface ForceOrder {
  /** The cluster that there was, as the operator names it. */
  readonly clusterId: string;
  /** Without asking. */
  readonly isConfirmed: boolean;
}

interface ForcedFlags {
  readonly order: ForceOrder | null;
  /** The other arguments. */
  readonly rest: readonly string[];
}

/** Takes the act out of the command line. */
export function forcedFlags(argumentsList: readonly string[]): Result<ForcedFlags, "usage"> {
  const rest: string[] = [];
  let clusterId: string | null = null;
  let isConfirmed = false;
  for (let at = 0; at < argumentsList.length; at++) {
    const argument = argumentsList[at] as string;
    if (argument === YES) isConfirmed = true;
    else if (argument !== FLAG && !argument.startsWith(`${FLAG}=`)) rest.push(argument);
    else if (clusterId !== null) return failure("usage", `${FLAG} is given twice`);
    else {
      clusterId = argument === FLAG ? (argumentsList[++at] ?? "") : argument.slice(FLAG.length + 1);
      if (clusterId === "" || clusterId.startsWith("--")) {
        return failure("usage", `${FLAG} needs a value: ${FLAG} <cluster id>`);
      }
    }
  }
  if (clusterId !== null) return ok({ order: { clusterId, isConfirmed }, rest });
  return isConfirmed ? failure("usage", `${YES} goes with ${FLAG}`) : ok({ order: null, rest });
}

/** What does not go together with the act; null when nothing. */
export function forceMistake({ initialCluster, join, storage }: ServerConfig): string | null {
  if (initialCluster.length > 0) return `${FLAG} does not go with --initial-cluster: leave it away`;
  if (join.length > 0) return `${FLAG} does not go with --join: leave it away`;
  return storage === "memory" ? `${FLAG} needs a data directory: --storage is memory` : null;
}
