/**
 * The commands that change where replicas of partitions may be, and what they hold as bytes: of up
 * to PLACEMENT_ITEMS_MAX partitions each, every one decided by itself.
 *
 * Pure. Part of the vocabulary in command.ts, which gives the types out again. Invariant: each says
 * what it was decided on, a generation or the index of a configuration, so that a late copy changes
 * nothing.
 */
import type { ByteReader, ByteWriter } from "../../base/codec.js";
import {
  configIndex,
  placementGeneration,
  type ConfigIndex,
  type PlacementGeneration,
} from "../../base/ids.js";
import { type CommandCodecs, int32 } from "./fields.js";

/** One step of one partition. */
export type ReplicaChange =
  /** A learner is to come; `replaces`: the voter that goes when it votes, 0 = none. */
  | { readonly kind: "add"; readonly nodeId: number; readonly replaces: number }
  /** A voter is to go. */
  | { readonly kind: "remove"; readonly nodeId: number }
  /** A learner is to go again. */
  | { readonly kind: "cancel"; readonly nodeId: number }
  /** Who was to go stays, as a voter. */
  | { readonly kind: "keep"; readonly nodeId: number };

export interface ReplicaOrder {
  readonly partitionId: number;
  /** Of the record that it was decided on. */
  readonly generation: PlacementGeneration;
  readonly change: ReplicaChange;
}

export interface ChangeReplicasCommand {
  readonly kind: "change-replicas";
  readonly items: readonly ReplicaOrder[];
}

/** An applied configuration of a group; of a joint one the members of both halves. */
export interface AppliedConfig {
  readonly partitionId: number;
  readonly configIndex: ConfigIndex;
  readonly voters: readonly number[];
  readonly learners: readonly number[];
}

export interface ReplicaReport extends AppliedConfig {
  /**
   * The newest record that this configuration rests on: what it says of a replica is an answer to
   * the role of that replica only if that record knew of the role.
   */
  readonly restsOn: PlacementGeneration;
}

/** What the leader of a group has applied. */
export interface ReportReplicasCommand {
  readonly kind: "report-replicas";
  readonly items: readonly ReplicaReport[];
}

export interface PlacementOrder extends AppliedConfig {
  readonly generation: PlacementGeneration;
}

/**
 * From full mode to a list: the members that the group has. There is no way back. The leader of the
 * group sends it after an entry that carries the generation after this one, so that no leader with
 * an older record changes the configuration meanwhile (control/placed-plan.ts).
 */
export interface PlacePartitionCommand {
  readonly kind: "place-partition";
  readonly items: readonly PlacementOrder[];
}

export type PlacementCommand =
  ChangeReplicasCommand | ReportReplicasCommand | PlacePartitionCommand;

const CHANGES: readonly ReplicaChange["kind"][] = ["add", "remove", "cancel", "keep"];

function writeOrder(writer: ByteWriter, { partitionId, generation, change }: ReplicaOrder): void {
  int32(writer, partitionId);
  writer.uint53(generation).uint8(CHANGES.indexOf(change.kind));
  int32(writer, change.nodeId);
  if (change.kind === "add") int32(writer, change.replaces);
}

function writeAll<Item>(
  writer: ByteWriter,
  items: readonly Item[],
  write: (writer: ByteWriter, item: Item) => void,
): void {
  writer.length(items.length);
  for (const item of items) write(writer, item);
}

function writeConfig(writer: ByteWriter, config: AppliedConfig): void {
  int32(writer, config.partitionId);
  writer.uint53(config.configIndex);
  writeAll(writer, config.voters, int32);
  writeAll(writer, config.learners, int32);
}

function writeReport(writer: ByteWriter, report: ReplicaReport): void {
  writeConfig(writer, report);
  writer.uint53(report.restsOn);
}

function writePlacement(writer: ByteWriter, order: PlacementOrder): void {
  writeConfig(writer, order);
  writer.uint53(order.generation);
}

function readChange(reader: ByteReader): ReplicaChange {
  const kind = CHANGES[reader.uint8()];
  const nodeId = reader.int32();
  if (kind === "add") return { kind, nodeId, replaces: reader.int32() };
  if (kind === undefined) reader.fail();
  return { kind: kind ?? "cancel", nodeId };
}

function readOrder(reader: ByteReader): ReplicaOrder {
  return {
    partitionId: reader.int32(),
    generation: placementGeneration(reader.uint53()),
    change: readChange(reader),
  };
}

/** As many as there are bytes for: a larger count is damage and must not steer an allocation. */
function readAll<Item>(
  reader: ByteReader,
  bytesAtLeast: number,
  read: (reader: ByteReader) => Item,
): Item[] {
  const count = reader.length();
  if (count * bytesAtLeast > reader.remainingBytes) reader.fail();
  const items: Item[] = [];
  for (let at = 0; at < count && !reader.failed; at++) items.push(read(reader));
  return items;
}

function readNodes(reader: ByteReader): number[] {
  return readAll(reader, 4, (from) => from.int32());
}

function readConfig(reader: ByteReader): AppliedConfig {
  return {
    partitionId: reader.int32(),
    configIndex: configIndex(reader.uint53()),
    voters: readNodes(reader),
    learners: readNodes(reader),
  };
}

function readReport(reader: ByteReader): ReplicaReport {
  return { ...readConfig(reader), restsOn: placementGeneration(reader.uint53()) };
}

function readPlacement(reader: ByteReader): PlacementOrder {
  return { ...readConfig(reader), generation: placementGeneration(reader.uint53()) };
}

/** Bytes that an item of each kind takes at least. */
const ORDER_BYTES = 17;
const CONFIG_BYTES = 22;

export const PLACEMENT_COMMANDS: CommandCodecs<PlacementCommand> = {
  "change-replicas": {
    number: 73,
    version: 1,
    write: (writer, { items }) => writeAll(writer, items, writeOrder),
    read: (reader) => {
      return { kind: "change-replicas", items: readAll(reader, ORDER_BYTES, readOrder) };
    },
  },
  "report-replicas": {
    number: 74,
    version: 1,
    write: (writer, { items }) => writeAll(writer, items, writeReport),
    read: (reader) => {
      return { kind: "report-replicas", items: readAll(reader, CONFIG_BYTES, readReport) };
    },
  },
  "place-partition": {
    number: 75,
    version: 1,
    write: (writer, { items }) => writeAll(writer, items, writePlacement),
    read: (reader) => {
      return { kind: "place-partition", items: readAll(reader, CONFIG_BYTES, readPlacement) };
    },
  },
};
