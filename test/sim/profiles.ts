/**
 * The profiles of runs: what kind of world a seed draws its plan for.
 *
 * Pure. Invariant: adding a profile changes no seed of another one.
 */
import { DEFAULT_HOST_SETTINGS, type HostSettings } from "../../src/host/settings.js";
import { FAULT_KINDS, type FaultKind } from "./faultkinds.js";
import { STRANDING } from "./swarm.js";

export interface Profile {
  readonly name: string;
  /** Operators add and remove nodes, move leaderships and restart nodes. */
  readonly hasOperators?: boolean;
  /** Those beyond the most that may vote join a cluster of so many founders, and stay learners. */
  readonly nodes: readonly number[];
  /** Faults that the profile may switch on. */
  readonly faults: readonly FaultKind[];
  /** Mean pause of a client between operations (ms), drawn from. */
  readonly thinkMs: readonly number[];
  readonly clients: readonly number[];
  /** Instead of what the seed would draw. */
  readonly host?: Partial<HostSettings>;
  readonly ticks?: number;
  readonly segmentBytes?: number;
  /** Mean times between two faults (ms), drawn from. */
  readonly faultEveryMs?: readonly number[];
}

const ALL_FAULTS = Object.keys(FAULT_KINDS) as FaultKind[];
/** What one node alone survives without losing anything. */
const LONELY_FAULTS = ALL_FAULTS.filter((kind) => !FAULT_KINDS[kind].needsPeers);

export const PROFILES: Readonly<Record<string, Profile>> = {
  one: {
    name: "one",
    nodes: [1],
    faults: LONELY_FAULTS,
    thinkMs: [50, 300, 1000],
    clients: [1, 3, 8, 16],
  },
  three: {
    name: "three",
    nodes: [3],
    faults: ALL_FAULTS,
    thinkMs: [100, 500, 2000],
    clients: [2, 5, 10],
  },
  five: {
    name: "five",
    nodes: [5],
    faults: ALL_FAULTS,
    thinkMs: [100, 500, 2000],
    clients: [2, 5, 10],
  },
  /** Nodes join and leave, come back empty, and leaderships move, under all faults. */
  members: {
    name: "members",
    nodes: [3, 3, 4, 5, 6],
    faults: ALL_FAULTS,
    thinkMs: [100, 500, 2000],
    clients: [2, 5, 10],
    hasOperators: true,
  },
  "calm-five": { name: "calm-five", nodes: [5], faults: [], thinkMs: [1000], clients: [8] },
  /** Many nodes and groups under little load: how cost grows with the cluster. */
  crowd: {
    name: "crowd",
    // A cluster has nine voters at most.
    nodes: [9],
    faults: ["kill", "isolate", "link-break"],
    thinkMs: [500],
    clients: [10],
    host: { initialPartitions: 222, heartbeatMs: 100, electionMs: 1000 },
    ticks: 10_000,
  },
  /** The largest world: two thousand groups, with the settings that ship, under light load. */
  wide: {
    name: "wide",
    nodes: [25],
    faults: ["kill", "isolate", "link-break"],
    thinkMs: [500],
    clients: [20],
    host: { ...DEFAULT_HOST_SETTINGS, initialPartitions: 2000 },
    // Large enough that joiners are fed from the log: an image for each of 2000 groups takes long.
    segmentBytes: 4 << 20,
    ticks: 10_000,
  },
  /**
   * Days of a cluster that sleeps most of the time: what goes by clocks and counters, and groups
   * that are woken by a request or a fault. A day costs a few seconds.
   */
  long: {
    name: "long",
    nodes: [1, 3, 3, 5],
    faults: ALL_FAULTS,
    thinkMs: [1_200_000, 3_600_000],
    clients: [2, 5],
    ticks: 5 * 86_400_000,
    faultEveryMs: [3_600_000, 21_600_000],
  },
  /** Leaders that lose the others while clients go on: tails that the next one overwrites. */
  stranded: {
    name: "stranded",
    nodes: [3, 3, 5],
    faults: [...STRANDING, "kill", "power-loss", "disk-slow", "pause-leader"],
    thinkMs: [20, 100, 300],
    clients: [5, 10],
    host: { initialPartitions: 1, batchEntriesMax: 1, inFlightEntriesMax: 16 },
    ticks: 30_000,
    faultEveryMs: [1000, 3000],
  },
  calm: { name: "calm", nodes: [1], faults: [], thinkMs: [100], clients: [4] },
};
