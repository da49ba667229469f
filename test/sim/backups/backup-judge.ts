/**
 * What is judged of backups when a run has ended: every backup that was published against what its
 * cluster applied, every restored cluster against the cut that it came from, and the histories of all
 * clusters together.
 */
import { META_PARTITION } from "../../../src/base/ids.js";
import { decodeEntry } from "../../../src/machine/commands/codec.js";
import type { PartitionRecord } from "../../../src/machine/commands/command.js";
import { decodeGroupRecord } from "../../../src/machine/commands/group-record.js";
import { decodeSequenceRow } from "../../../src/machine/sequences/sequence-row.js";
import {
  RowKind,
  byteKeyToText,
  generationPrefix,
  groupRecordKey,
} from "../../../src/machine/store/keys.js";
import { decodeText } from "../../../src/base/bytes.js";
import { hashPartition, keyHashText, keySpaceOf } from "../../../src/base/routing.js";
import { findRange } from "../../../src/control/ranges.js";
import type { LogEntry } from "../../../src/ports.js";
import { type HistoryCheckOptions, HISTORY_CHECKS } from "../../judge/checkers/history-checks.js";
import type { SeenRows } from "../../judge/checkers/backups/cut-is-prefix.js";
import type {
  SeenBackup,
  SeenEntry,
  SeenWrite,
} from "../../judge/checkers/backups/seen-backups.js";
import { checkAllocationOrder } from "../../judge/checkers/clients/allocation-order.js";
import { checkAnsweredOnce } from "../../judge/checkers/clients/answered-once.js";
import { splitSpaces, withLeaderships } from "../../judge/checkers/clients/leaderships.js";
import { checkLinearizability } from "../../judge/checkers/clients/linearizability.js";
import { checkOneHolder } from "../../judge/checkers/clients/one-holder.js";
import { checkTokensGrow } from "../../judge/checkers/clients/tokens-grow.js";
import { checkValuesUnique } from "../../judge/checkers/clients/values-unique.js";
import type { GrantSeen } from "../../judge/checkers/backups/tokens-rise.js";
import type { History, LockResult, SequenceResult } from "../../judge/history.js";
import { BUCKETS } from "../clients/kv-requests.js";
import type { BackupRun } from "./backup-run.js";
import { type GroupAtCut, StatesAtCut, metaIn, settledSpaces } from "./first-states.js";
import type { KnownCluster } from "./known-clusters.js";
import type { Published } from "./published.js";
import type { MadeState } from "./restorer.js";
import type { GroupRows } from "./shadow.js";

/** Rows that a restore changes, and those that it takes away. */
const CHANGED: ReadonlySet<number> = new Set([
  ...[RowKind.cluster, RowKind.member, RowKind.formerMember, RowKind.partition],
  RowKind.plannerHold,
]);

function digestOf({ kind, payload }: Pick<LogEntry, "kind" | "payload">): string {
  let sum = kind ^ 0x9e3779b9;
  for (let at = 0; at < payload.length; at++) {
    sum = Math.imul(sum ^ (payload[at] as number), 0x01000193);
  }
  return `${payload.length} ${sum >>> 0}`;
}

/** Rows as text; `isKept`: which of them count. */
function seenRows(rows: GroupRows, isKept: (kind: number) => boolean = () => true): SeenRows {
  const seen = new Map<string, string>();
  for (const [key, value] of rows) {
    if (isKept(key.charCodeAt(0))) seen.set(key, Buffer.from(value).toString("latin1"));
  }
  return seen;
}

/** Forcing also ends what was under way, each group known as of another moment. */
const SETTLED: ReadonlySet<number> = new Set([RowKind.range, RowKind.rangeMove, RowKind.ownership]);

/** The same, but for what a restore may change. */
function keptRows(rows: GroupRows, isForced: boolean): SeenRows {
  const isKept = (kind: number): boolean => {
    return !CHANGED.has(kind) && !(isForced && SETTLED.has(kind));
  };
  const seen = new Map(seenRows(rows, isKept));
  for (const [key, value] of rows) {
    if (key.charCodeAt(0) !== RowKind.sequence) continue;
    const row = decodeSequenceRow(value);
    const kept = { ...row, incarnation: 0, before: 0n };
    const text = JSON.stringify(kept, (_name, part: unknown) =>
      typeof part === "bigint" ? `${part}` : part,
    );
    seen.set(key, text);
  }
  return seen;
}

function seenBackup({ id, manifest, askedMs, logs }: Published): SeenBackup {
  return {
    ...{ id, askedMs, at: manifest.clusterSnapshot },
    parts: manifest.partitionRanges.map(({ partition, fromIndex, toIndex, toTerm }) => {
      const log = logs.get(partition);
      const entries = log?.entries ?? [];
      return {
        ...{ partition, before: fromIndex - 1, end: toIndex, endTerm: toTerm },
        chain: log?.summary.trailer.end.chain ?? "",
        entries: entries.map((entry) => ({
          ...{ index: entry.index, term: entry.term, digest: digestOf(entry) },
        })),
      };
    }),
  };
}

/** Writes of values of their own, by value, with where their first entry is. */
function writesOf(cluster: KnownCluster, history: History): Map<string, SeenWrite> {
  const called = new Map<string, number>();
  const seen = new Map<string, number>();
  for (const { operation, outcome, callMs, returnMs } of history.attempts) {
    if (!("key" in operation) || operation.ephemeral) continue;
    const result = outcome?.kind === "ok" ? outcome.result : null;
    const isSet = operation.kind === "kv-set";
    const value = isSet
      ? operation.value
      : result !== null && "value" in result
        ? result.value
        : null;
    if (value === null || !/^[vc]\d/.test(value)) continue;
    if (isSet) called.set(value, Math.min(called.get(value) ?? Infinity, callMs));
    const shows = result !== null && (isSet ? result.type === "Set" : result.type === "Got");
    if (!shows || returnMs === null) continue;
    seen.set(value, Math.min(seen.get(value) ?? Infinity, returnMs));
  }
  const writes = new Map<string, SeenWrite>();
  const setMs = new Map<string, number>();
  for (const partition of cluster.truth.partitions) {
    for (const entry of cluster.truth.entries(partition)) {
      if (entry === undefined || entry.stamp === null) continue;
      const decoded = decodeEntry(entry.payload);
      if (!decoded.ok) continue;
      for (const [at, command] of decoded.value.commands.entries()) {
        if (command.kind !== "kv-set" || command.value === null) continue;
        const value = decodeText(command.value) ?? "";
        const calledMs = called.get(value);
        if (calledMs === undefined || entry.moved.includes(at)) continue;
        // A try of later may have set it in another partition once more.
        if (entry.atMs >= (setMs.get(value) ?? Infinity)) continue;
        setMs.set(value, entry.atMs);
        const seenMs = seen.get(value) ?? Infinity;
        writes.set(value, { value, calledMs, seenMs, partition, index: entry.index });
      }
    }
  }
  return writes;
}

function idOf({ partitionId }: PartitionRecord): number {
  return partitionId;
}

export class BackupJudge {
  private readonly writes = new Map<KnownCluster, Map<string, SeenWrite>>();
  /** Key spaces that may be moved. */
  private readonly movable: ReadonlySet<string>;

  constructor(
    private readonly run: BackupRun,
    private readonly options: HistoryCheckOptions,
    private readonly partitions: number,
    private readonly endMs: number,
  ) {
    const histories = [run.first, ...run.restorer.known].map(({ history }) => history);
    this.movable = new Set([
      ...BUCKETS.slice(0, run.parts.plan.ranges?.spaces ?? 0),
      ...histories.flatMap((history) => [...splitSpaces(history.history(endMs))]),
    ]);
  }

  judge(): void {
    const all = [...this.run.catalogued.published.values()];
    for (const published of all) this.backup(published);
    this.images(all);
    for (const made of this.run.restorer.made) this.restored(made);
    this.together();
  }

  private writesOf(cluster: KnownCluster): Map<string, SeenWrite> {
    let writes = this.writes.get(cluster);
    if (writes === undefined) {
      writes = writesOf(cluster, cluster.history.history(this.endMs));
      this.writes.set(cluster, writes);
    }
    return writes;
  }

  private backup(published: Published): void {
    const { checks } = this.run.parts;
    const { cluster } = published;
    const { truth } = cluster;
    const { there, gone } = this.partitionsAt(published);
    const seen = { ...seenBackup(published), gone };
    const applied = (partition: number, index: number): SeenEntry | undefined => {
      const entry = truth.entry(partition, index);
      if (entry === undefined) return undefined;
      return { index, term: entry.term, digest: digestOf(entry), stamp: entry.stamp };
    };
    checks.prefix.backup(seen, there, applied);
    checks.digests.backup(seen, (partition, index) => truth.entry(partition, index)?.chain);
    const byValue = this.writesOf(cluster);
    const writes = [...byValue.values()];
    checks.acknowledged.backup(seen, writes);
    this.increment(published, applied);
    if (seen.at === null) return;
    const chains = this.run.chains().map((values) => {
      return values.flatMap((value) => byValue.get(value) ?? []);
    });
    checks.closed.cut(seen, writes, cluster === this.run.first ? chains : []);
    checks.split.cut(seen, (partition) => truth.entries(partition).flatMap((entry) => entry ?? []));
  }

  /** Which partitions there were at the end of a backup, and which no more, as meta had it. */
  private partitionsAt({ cluster, manifest }: Published): {
    readonly there: readonly number[];
    readonly gone: ReadonlySet<number>;
  } {
    const { shadows, truth } = cluster;
    const always = { there: truth.partitions, gone: new Set<number>() };
    const { partitionRanges } = manifest;
    const range = partitionRanges.find(({ partition }) => partition === META_PARTITION);
    const meta = shadows.at(META_PARTITION, range?.toIndex ?? 0)?.machine.meta;
    // Whose beginning nobody knows has what was applied.
    if (meta === undefined) return always;
    const records = meta.partitions();
    const isGone = ({ state }: PartitionRecord): boolean => state === "Removed";
    const there = records.filter((record) => !isGone(record)).map(idOf);
    return { there: [META_PARTITION, ...there], gone: new Set(records.filter(isGone).map(idOf)) };
  }

  private increment(
    { id, manifest, cluster }: Published,
    applied: (partition: number, index: number) => SeenEntry | undefined,
  ): void {
    const { catalogued, increments } = this.run;
    const asked = increments.get(id);
    if (asked?.substitution === undefined) return;
    const { substitution, parentId, hasAllLogs } = asked;
    const parent = catalogued.published.get(parentId);
    if (parent === undefined) return;
    const begins = new Map<number, number>();
    if (manifest.type === "Incremental") {
      for (const { partition, fromIndex } of manifest.partitionRanges) {
        begins.set(partition, fromIndex - 1);
      }
    }
    const isOwnParent = parent.cluster === cluster;
    const seen = {
      ...{ id, substitution, begins, isOwnParent, topology: manifest.topologyGeneration },
      parentTopology: parent.manifest.topologyGeneration,
      parentEnds: parent.manifest.partitionRanges.map(({ partition, toIndex, toTerm }) => {
        return { partition, index: toIndex, term: toTerm };
      }),
    };
    const { checks } = this.run.parts;
    checks.honest.increment(seen, isOwnParent ? applied : () => undefined, hasAllLogs);
  }

  /** In the order of the indexes, so that each partition is replayed once. */
  private images(all: readonly Published[]): void {
    const { checks } = this.run.parts;
    const looks = all.flatMap(({ id, cluster, images }) => {
      return [...images].map(([partition, image]) => ({ id, cluster, partition, ...image }));
    });
    looks.sort((a, b) => a.index - b.index);
    for (const { id, cluster, partition, index, rows } of looks) {
      const state = cluster.shadows.at(partition, index);
      if (state === null) continue;
      checks.prefix.image(id, partition, index, seenRows(rows), seenRows(state.rows));
    }
  }

  /** The last entry of a partition that a restore has: the end of its chain, or of the target time. */
  private endOf({ leaf, targetTimeMs, ends }: MadeState, partition: number): number {
    if (leaf === null) return ends.get(partition) ?? 0;
    const range = leaf.manifest.partitionRanges.find((each) => each.partition === partition);
    const end = range?.toIndex ?? 0;
    if (targetTimeMs === 0) return end;
    const [root = leaf] = this.run.catalogued.chainOf(leaf);
    const first = root.manifest.partitionRanges.find((each) => each.partition === partition);
    for (let index = first?.fromIndex ?? 1; index <= end; index++) {
      const stamp = leaf.cluster.truth.entry(partition, index)?.stamp ?? null;
      if (stamp !== null && stamp.l > targetTimeMs) return index - 1;
    }
    return end;
  }

  private restored(made: MadeState): void {
    const { checks } = this.run.parts;
    const { name, known, from, leaf, beganMs } = made;
    const partitions = leaf?.manifest.partitionRanges.map((range) => range.partition);
    const groups: GroupAtCut[] = [];
    const incarnations = new Map<string, number>();
    for (const partition of partitions ?? made.ends.keys()) {
      const bytes = made.rows.get(groupRecordKey(partition));
      const record = bytes === undefined ? null : decodeGroupRecord(bytes);
      const own = from.shadows.at(partition, this.endOf(made, partition));
      if (own === null || record === null) continue;
      const prefix = generationPrefix(partition, record.generation);
      const rows = new Map<string, Uint8Array>();
      for (const [key, value] of made.rows) {
        if (key.startsWith(prefix)) rows.set(key.slice(prefix.length), value);
      }
      const isForced = leaf === null;
      const wanted = keptRows(own.rows, isForced);
      checks.digests.restored(name, partition, keptRows(rows, isForced), wanted);
      checks.digests.leaseClock(name, partition, record.leaseMs, own.machine.leaseMs);
      const keys = own.machine.ownership.view();
      groups.push({ partition, rows: own.rows, leaseMs: own.machine.leaseMs, keys });
      for (const [key, value] of rows) {
        if (key.charCodeAt(0) !== RowKind.sequence) continue;
        const { incarnation = 0 } = decodeSequenceRow(value) ?? {};
        incarnations.set(byteKeyToText(key.slice(1)), incarnation);
      }
    }
    this.countRanges(made);
    if (known === null) return;
    const { keysRetainedMs } = this.options.linearizability.sequence;
    known.states = new StatesAtCut({
      ...{ groups, beganMs, keysRetainedMs, homeOf: this.homesAt(made) },
      isSettled: leaf === null,
      incarnationOf: (sequence) => incarnations.get(sequence) ?? null,
    });
    this.historyOf(known);
  }

  /** What a restored map of key ranges was put to the test with; its rows are compared above. */
  private countRanges(made: MadeState): void {
    const { plan, checks } = this.run.parts;
    if (plan.ranges === null) return;
    if (made.leaf === null) checks.forcedMap.settled(made.name, settledSpaces(made));
    const end = this.endOf(made, META_PARTITION);
    const meta = made.from.shadows.at(META_PARTITION, end)?.machine.meta;
    if (meta === undefined) return;
    const isDivided = meta.keySpaces().some(({ descriptors }) => descriptors.length > 1);
    if (isDivided) checks.went.count("restores of divided key spaces");
    const isForced = made.leaf === null;
    if (isForced && meta.moves().length > 0) checks.went.count("forced in the middle of a move");
  }

  /** Where the map of a made state has keys: the old cluster's, or the one that was forced. */
  private homesAt(made: MadeState): (key: string) => number {
    const end = this.endOf(made, META_PARTITION);
    const { shadows } = made.from;
    const forced = made.leaf === null ? metaIn(made.rows) : null;
    const meta = (forced ?? shadows.at(META_PARTITION, end)?.machine)?.meta;
    const spaces = new Map(meta?.keySpaces().map((each) => [each.keySpace, each.descriptors]));
    return (key) => {
      const range = findRange(spaces.get(keySpaceOf(key)) ?? [], key);
      return range?.partitionId ?? hashPartition(keyHashText(key), this.partitions);
    };
  }

  private historyOf(known: KnownCluster): void {
    const { checks } = this.run.parts;
    const { states, history, leaderships } = known;
    if (states === null) return;
    const { drift, linearizability } = this.options;
    const told = withLeaderships(
      history.history(this.endMs),
      ...([leaderships, this.partitions, this.movable] as const),
    );
    const verdicts = [
      checkAnsweredOnce(told, 0),
      ...checkLinearizability(told, { ...linearizability, minimum: {}, first: states }),
      checkValuesUnique(told, 0),
      checkAllocationOrder(told, 0),
      checkTokensGrow(told, 0),
      checkOneHolder(told, { minimum: HISTORY_CHECKS.minimum.beliefs * 0, drift }),
    ];
    checks.restored.cluster(known.name, verdicts);
    checks.restored.inherited(states.inherited);
  }

  /** What concerns all clusters of the catalogue. */
  private together(): void {
    const { checks } = this.run.parts;
    const all = [this.run.first, ...this.run.restorer.known];
    for (const cluster of all) {
      const history = cluster.history.history(this.endMs);
      const { states, name: own } = cluster;
      // One that was forced is no restore of the catalogue: it knows of none, and none of it.
      const isForced = own === this.run.restorer.forced?.name;
      const kept = ({ lock, ephemeral, token }: GrantSeen): boolean => {
        const held = ephemeral ? null : (states?.lock(lock)?.grant ?? null);
        return held !== null && !held.released && held.token === token;
      };
      const first = this.run.first.name;
      checks.tokens.cluster(own, grantsOf(history), kept, (other) => {
        return isForced ? other === first : other !== "forced cluster";
      });
      if (isForced) continue;
      const isFirst = states === null;
      for (const [name, incarnations] of incarnationsOf(history, isFirst)) {
        const isRestored = states?.has(RowKind.sequence, name) ?? false;
        checks.incarnations.sequence(cluster.name, name, incarnations, isRestored);
      }
    }
  }
}

function grantsOf(history: History): GrantSeen[] {
  const grants: GrantSeen[] = [];
  for (const { operation, outcome } of history.attempts) {
    if (operation.kind !== "try-lock" || outcome?.kind !== "ok") continue;
    const { type, token } = outcome.result as LockResult;
    if (type !== "Locked" || token === null) continue;
    grants.push({ lock: operation.resource, ephemeral: operation.ephemeral, token });
  }
  return grants;
}

/** By sequence, what it was seen to have; in a restored cluster until it may have been made anew there. */
function incarnationsOf(history: History, isFirst: boolean): Map<string, Set<bigint>> {
  const anewAt = new Map<string, number>();
  for (const { operation, callOrder } of isFirst ? [] : history.attempts) {
    const { kind } = operation;
    if (kind !== "create-sequence" && kind !== "delete-sequence") continue;
    const name = operation.name.trim();
    anewAt.set(name, Math.min(anewAt.get(name) ?? Infinity, callOrder));
  }
  const found = new Map<string, Set<bigint>>();
  for (const { operation, outcome, returnOrder } of history.attempts) {
    if (!("name" in operation) || operation.kind === "allocate" || outcome?.kind !== "ok") continue;
    const name = operation.name.trim();
    const { sequence } = outcome.result as SequenceResult;
    if (sequence === null || (returnOrder ?? Infinity) > (anewAt.get(name) ?? Infinity)) continue;
    let known = found.get(name);
    if (known === undefined) found.set(name, (known = new Set()));
    known.add(sequence.incarnation);
  }
  return found;
}
