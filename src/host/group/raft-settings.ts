/**
 * The settings of a group's core, from those of the host: durations become ticks.
 *
 * Pure. Invariant: 1. A tick is a heartbeat interval.
 */
import { type CoreConfig, defaultConfig } from "../../raft/state/config.js";
import type { HostSettings } from "../settings.js";

/** `seed` differs by node and group, so that timeouts do (P-007). */
export function raftSettings(settings: HostSettings, seed: number): CoreConfig {
  const { nodeId, heartbeatMs, electionMs, electionEndMs, waitingReadsMax } = settings;
  return {
    ...defaultConfig(nodeId, seed),
    electionTicks: Math.ceil(electionMs / heartbeatMs),
    electionSpreadTicks: Math.ceil(Math.max(1, electionEndMs - electionMs) / heartbeatMs),
    maxPendingReads: Math.max(2, waitingReadsMax),
  };
}
