/**
 * What the flags of placement have to do with each other and with the times of elections.
 *
 * Pure. Invariant: a factor without the rebalancer is allowed: an operator moves replicas by hand.
 */
import { REPLICATION_FACTOR_MAX } from "../../base/limits.js";
import { FLAGS } from "./flag-table.js";
import { type RawFlags, defaultValue } from "./flags.js";
import { type Check, firstOf, outside } from "./relation.js";

/** Given, and not as it would be anyway. */
function isAsked(raw: RawFlags, name: string): boolean {
  const flag = FLAGS.find((each) => each.name === name);
  return raw.given.has(name) && flag !== undefined && raw.values.get(name) !== defaultValue(flag);
}

const SECOND_MS = 1000;
const HOUR_MS = 3_600_000;

/** Relations of the placement flags. */
export const checkPlacement: Check = (config, raw) => {
  const { deadMemberTimeoutMs: dead, endElectionTimeoutMs: end } = config;
  const isEnabled = config.enableRebalancer ?? config.replicationFactor > 0;
  const flag = "--raft-dead-member-timeout";
  if (isAsked(raw, flag) && dead > 0 && !isEnabled) {
    return `${flag} is ${dead}ms, but the placement rebalancer is off: give --raft-enable-placement-rebalancer too, or 0`;
  }
  if (isEnabled && dead > 0 && dead < 5 * end) {
    return `${flag} is ${dead}ms; it must be 0, or at least 5 times --raft-end-election-timeout (${end}ms)`;
  }
  return firstOf(
    outside("--raft-replication-factor", config.replicationFactor, 0, REPLICATION_FACTOR_MAX),
    outside("--raft-placement-pass-interval (ms)", config.placementPassIntervalMs, 100, HOUR_MS),
    outside(
      "--raft-decommission-drain-timeout (ms)",
      config.drainTimeoutMs,
      SECOND_MS,
      24 * HOUR_MS,
    ),
  );
};
