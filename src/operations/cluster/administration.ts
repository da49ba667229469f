/**
 * From the name of an administrative call to what carries it out.
 *
 * Invariants: 1. A call takes as long as its caller grants. 2. Calls about what this node has
 * applied are answered at once, all others never in the turn of the call.
 */
import type { CallName, NotAtLevel } from "../../api/calls.js";
import { FIRST_LEVEL } from "../../base/ids.js";
import type { RequestContext } from "../api/requests.js";
import type { Administration } from "../api/administration.js";
import { Backups } from "../backups/backups.js";
import type { Serving } from "../serving/serving.js";
import { Cluster } from "./cluster.js";
import { finalize } from "./finalize.js";
import { KeyRanges } from "./key-ranges.js";
import { mergeRanges } from "./range-merge.js";
import { RangeMoves } from "./range-moves.js";
import { RangeSizes } from "./range-sizes.js";
import { overview } from "./overview.js";
import { Replicas } from "./replicas.js";

/** An answer as the end of its call. */
function ends<Answer>(done: (end: { readonly answer: Answer }) => void): (answer: Answer) => void {
  return (answer) => done({ answer });
}

/** The same calls; those of a higher level than the cluster's end so (contract 5.5 U8). */
function gated(serving: Serving, calls: Administration): Administration {
  const { operations } = serving.settings.permits;
  const all: Record<string, unknown> = { ...calls };
  for (const name of Object.keys(calls) as CallName[]) {
    if ((operations[name] ?? FIRST_LEVEL) <= FIRST_LEVEL) continue;
    const call = calls[name] as (request: unknown, context: RequestContext, done: Done) => void;
    all[name] = (request: unknown, context: RequestContext, done: Done): void => {
      if (serving.permits(name, null)) return call(request, context, done);
      serving.ports.timer.soon(() => done({ notAtLevel: true }));
    };
  }
  return all as unknown as Administration;
}

type Done = (end: NotAtLevel) => void;

/** All calls of a node, and its health beside them. */
export function administrationOf(serving: Serving): {
  readonly administration: Administration;
  readonly cluster: Cluster;
  readonly replicas: Replicas;
  readonly keyRanges: KeyRanges;
  readonly backups: Backups;
} {
  const backups = new Backups(serving);
  const keyRanges = new KeyRanges(serving);
  const replicas = new Replicas(serving);
  const cluster = new Cluster(serving, keyRanges, replicas);
  const sizes = new RangeSizes(serving);
  const moves = new RangeMoves(serving, sizes);
  const administration: Administration = {
    "cluster.membership": (_request, _context, done) => done({ answer: cluster.membership() }),
    "cluster.placement": (_request, _context, done) => done({ answer: replicas.placement() }),
    "cluster.overview": (_request, _context, done) => done({ answer: overview(serving, replicas) }),
    "cluster.routing": ({ keySpace }, _context, done) =>
      done({ answer: cluster.routing(keySpace) }),
    "cluster.leave": ({ nodeId }, context, done) => cluster.leave(nodeId, context, ends(done)),
    "cluster.setReplicationFactor": (request, { deadlineMs }, done) =>
      replicas.setFactor(request, deadlineMs, ends(done)),
    "cluster.finalize": ({ level }, context, done) =>
      finalize(serving, level, context, (result) => {
        const success = result.status === "Finalized" || result.status === "AlreadyFinalized";
        done({ answer: { success, ...result } });
      }),
    "ranges.list": ({ keySpace }, _context, done) => done({ answer: keyRanges.list(keySpace) }),
    "ranges.register": ({ keySpace }, context, done) =>
      keyRanges.register(keySpace, context, ends(done)),
    "ranges.unregister": ({ keySpace }, context, done) =>
      keyRanges.unregister(keySpace, context, ends(done)),
    "ranges.split": (request, context, done) => moves.split(request, context, ends(done)),
    "ranges.merge": (_request, context, done) => mergeRanges(serving, sizes, context, ends(done)),
    ...backups.calls,
  };
  return { administration: gated(serving, administration), cluster, replicas, keyRanges, backups };
}
