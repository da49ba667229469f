/**
 * Every partition: who leads it, where its replicas are, how far they are behind. Those that are
 * out of order come first.
 */
import { Notice } from "../parts/action.js";
import { element, setText } from "../parts/elements.js";
import { readMetrics, type Series } from "../parts/figures.js";
import type { Context, Page } from "../parts/page.js";
import type { Overview, PlacedPartition, Placement, Routing } from "../parts/shapes.js";
import { type Cell, Table } from "../parts/table.js";
import { count, plural, printable } from "../parts/words.js";

const APPLY_LAG = "svc_raft_apply_lag_entries";
const PEER_LAG = "svc_raft_peer_lag_entries";
const ASLEEP = "svc_raft_asleep";
/** The text of all metrics is long: it is not asked for each time. */
const LAG_EVERY_MS = 10_000;
/** Entries on their way are no lag. */
const LAG_SEEN = 1000;

interface Row {
  readonly placed: PlacedPartition;
  /** Endpoint for clients; null: not known. */
  readonly leader: string | null;
  readonly replicas: string;
  readonly lag: number | null;
  readonly isAsleep: boolean;
  readonly state: Cell;
  readonly isFine: boolean;
}

function stateOf(placed: PlacedPartition, leader: string | null, lag: number | null): Cell {
  if (leader === null) return { text: "no leader", tone: "bad" };
  const { state, replicas, effectiveReplicationFactor } = placed;
  const voters = replicas.filter(({ role }) => role === "Voter").length;
  if (replicas.length > 0 && voters < effectiveReplicationFactor) {
    return { text: "too few replicas", tone: "warn" };
  }
  if (replicas.some(({ role }) => role !== "Voter")) return { text: "moving", tone: "warn" };
  if (lag !== null && lag >= LAG_SEEN) return { text: "behind", tone: "warn" };
  if (state !== "Active") return { text: state.toLowerCase(), tone: "warn" };
  return { text: "in order", tone: "good" };
}

/** How endpoints are called here: by the number of the node. */
function namesOf(overview: Overview | null): (endpoint: string) => string {
  const names = new Map<string, string>();
  for (const { nodeId, endpoint, clientEndpoint } of overview?.nodes ?? []) {
    names.set(endpoint, String(nodeId));
    if (clientEndpoint !== "") names.set(clientEndpoint, String(nodeId));
  }
  return (endpoint) => names.get(endpoint) ?? printable(endpoint);
}

/** What the asked node knows of how far replicas are behind, by partition. */
class Lags {
  private readAtMs = -LAG_EVERY_MS;
  private lags = new Map<string, number>();
  private asleep = new Set<string>();

  async read({ api }: Context): Promise<void> {
    if (performance.now() - this.readAtMs < LAG_EVERY_MS) return;
    this.readAtMs = performance.now();
    const read = readMetrics(await api.text("/metrics"), [APPLY_LAG, PEER_LAG, ASLEEP]);
    const all = (name: string): readonly Series[] => read.get(name) ?? [];
    this.lags = new Map();
    for (const { labels, value } of [...all(APPLY_LAG), ...all(PEER_LAG)]) {
      const id = labels["partition"] ?? "";
      this.lags.set(id, Math.max(value, this.lags.get(id) ?? 0));
    }
    const sleeping = all(ASLEEP).filter(({ value }) => value === 1);
    this.asleep = new Set(sleeping.map(({ labels }) => labels["partition"] ?? ""));
  }

  of(partition: number): number | null {
    return this.lags.get(String(partition)) ?? null;
  }

  isAsleep(partition: number): boolean {
    return this.asleep.has(String(partition));
  }
}

function rowsOf(
  placement: Placement,
  { leaders }: Routing,
  lags: Lags,
  nameOf: (endpoint: string) => string,
): readonly Row[] {
  const led = new Map(leaders.map(({ partitionId, endpoint }) => [partitionId, endpoint]));
  const rows = placement.partitions.map((placed): Row => {
    const { partitionId, replicas } = placed;
    const endpoint = led.get(partitionId);
    const leader = endpoint === undefined || endpoint === "" ? null : nameOf(endpoint);
    const lag = lags.of(partitionId);
    const state = stateOf(placed, leader, lag);
    const named = replicas.map(({ endpoint, role }) => {
      return role === "Voter" ? nameOf(endpoint) : `${nameOf(endpoint)} (${role.toLowerCase()})`;
    });
    const where = named.length === 0 ? "every voter" : named.join(", ");
    const isAsleep = lags.isAsleep(partitionId);
    const isFine = state.tone === "good";
    return { placed, leader, replicas: where, lag, isAsleep, state, isFine };
  });
  const order = (row: Row): number => (row.isFine ? 1 : 0);
  return rows.sort((a, b) => order(a) - order(b) || a.placed.partitionId - b.placed.partitionId);
}

export const PARTITIONS: Page = {
  name: "partitions",
  title: "Partitions",
  open(context) {
    const notice = new Notice();
    const summary = element("p", { class: "muted" });
    const lags = new Lags();
    const table = new Table<Row>(
      "Partitions and placement",
      [
        { title: "Partition", isNumber: true, cell: (r) => String(r.placed.partitionId) },
        { title: "State", cell: ({ state }) => state },
        { title: "Leader", cell: (r) => (r.leader === null ? "–" : `node ${r.leader}`) },
        { title: "Replicas on", cell: ({ replicas }) => replicas },
        { title: "Wanted", isNumber: true, cell: wanted },
        { title: "Behind", isNumber: true, cell: ({ lag }) => (lag === null ? "–" : count(lag)) },
        { title: "Sleeps", cell: ({ isAsleep }) => (isAsleep ? "yes" : "no") },
        { title: "Generation", isNumber: true, cell: (r) => String(r.placed.generation) },
      ],
      ({ placed }) => String(placed.partitionId),
      "The cluster has no partitions yet.",
    );
    const refresh = async (): Promise<void> => {
      try {
        const placement = await context.api.get<Placement>("/v1/cluster/placement");
        const routing = await context.api.get<Routing>("/v1/cluster/routing");
        await lags.read(context);
        const rows = rowsOf(placement, routing, lags, namesOf(context.overview()));
        table.update(rows);
        const out = rows.filter(({ isFine }) => !isFine).length;
        const factor = placement.replicationFactor;
        const mode = factor === 0 ? "every voter hosts all" : `${factor} replicas each`;
        const moves = placement.rebalancerEnabled ? "on" : "off";
        const order = out === 0 ? "all in order" : `${count(out)} out of order`;
        const all = plural(rows.length, "data partition");
        setText(summary, `${all}, ${order}; ${mode}; rebalancer of this node ${moves}.`);
        notice.clear();
      } catch (error) {
        notice.fail(error);
      }
    };
    const hint =
      "Behind: entries that are not applied here, or that a replica is not known to have, " +
      "as the asked node knows it; – where it does not host the partition or shows no figure.";
    const small = element("p", { class: "muted" }, hint);
    return { root: element("div", {}, summary, notice.root, table.root, small), refresh };
  },
};

function wanted({ placed }: Row): string {
  const factor = placed.effectiveReplicationFactor;
  return factor === 0 ? "all" : String(factor);
}
