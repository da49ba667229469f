/**
 * `add-nodes`: makes nodes, bare or bootstrapped, with the options that a scenario may set.
 */
import { assertConfig, unlimited, type CoreConfig } from "../../src/raft/state/config.js";
import type { Membership } from "../../src/raft/state/types.js";
import {
  allowOptions,
  numberAt,
  option,
  optionValues,
  parseNumber,
  parseTruth,
} from "./arguments.js";
import { CommandError, type Environment } from "./environment.js";
import { HarnessNode } from "./node.js";
import type { Command } from "./scenario.js";
import type { Snapshot } from "./wire.js";

const optionNames = [
  "voters",
  "learners",
  "index",
  "content",
  "async-storage-writes",
  "inflight",
  "prevote",
  "checkquorum",
  "read-only",
  "max-committed-size-per-ready",
  "disable-conf-change-validation",
  "step-down-on-removal",
  // Our own, see README.md.
  "max-uncommitted-size",
  "max-inflight-size",
  "max-message-size",
  "cautious-transfer",
  "quiet-commits",
];

/** How election timeouts are drawn in a run: at random from a seed, or always the same. */
export interface Draws {
  readonly seed: number;
  /** 0 draws at random. */
  readonly fixedTicks: number;
}

let draws: Draws = { seed: 1, fixedTicks: 0 };

/** Sets how nodes made from now on draw. */
export function setDraws(next: Draws): void {
  draws = next;
}

function readMode(command: Command): "safe" | "leaseBased" {
  const name = option(command, "read-only") ?? "safe";
  if (name === "safe") return "safe";
  if (name === "lease-based") return "leaseBased";
  throw new CommandError(`invalid read-only option ${JSON.stringify(name)}`);
}

function configFor(command: Command, id: number): CoreConfig {
  const flag = (name: string): boolean => parseTruth(option(command, name) ?? "false");
  const limit = (name: string): number => {
    const value = option(command, name);
    return value === null ? unlimited : parseNumber(value);
  };
  const maxMessageBytes = limit("max-message-size");
  const maxInflightBytes = limit("max-inflight-size");
  return {
    id,
    electionTicks: 3,
    electionSpreadTicks: 0,
    heartbeatTicks: 1,
    preVote: flag("prevote"),
    checkQuorum: flag("checkquorum"),
    stepDownOnRemoval: flag("step-down-on-removal"),
    cautiousTransfer: flag("cautious-transfer"),
    announceCommits: !flag("quiet-commits"),
    votesTellCommit: false,
    readMode: readMode(command),
    maxMessageBytes,
    maxInflightMessages: limit("inflight"),
    maxInflightBytes,
    maxUncommittedBytes: limit("max-uncommitted-size"),
    maxCommittedBytesPerTake: limit("max-committed-size-per-ready"),
    maxPendingReads: 1000,
    // What an empty entry takes in the original's encoding, with term and index below 128.
    entryOverheadBytes: 6,
    disableConfigChangeValidation: flag("disable-conf-change-validation"),
    disableProposalForwarding: false,
    applyBeforeWritten: !flag("async-storage-writes"),
    seed: draws.seed * 1000 + id,
    fixedElectionTicks: draws.fixedTicks,
  };
}

function ids(command: Command, name: string): number[] {
  return (optionValues(command, name) ?? []).map(parseNumber).sort((left, right) => left - right);
}

/** The state that the new nodes start from. */
function startOf(command: Command): Snapshot {
  const membership: Membership = {
    voters: ids(command, "voters"),
    votersOutgoing: [],
    learners: ids(command, "learners"),
    learnersNext: [],
    autoLeave: false,
  };
  const data = option(command, "content") ?? "";
  const bootstraps = ["voters", "learners", "index", "content"].some((name) => {
    return optionValues(command, name) !== null;
  });
  if (!bootstraps) return { index: 0, term: 0, data, membership };
  const index = parseNumber(option(command, "index") ?? "0");
  if (index <= 1) throw new CommandError("index must be specified as > 1 due to bootstrap");
  return { index, term: 1, data, membership };
}

/** Settings that the model refuses, with its words. */
function refuseSettings(config: CoreConfig): void {
  if (config.maxInflightMessages <= 0) {
    throw new CommandError("max inflight messages must be greater than 0");
  }
  if (config.readMode === "leaseBased" && !config.checkQuorum) {
    throw new CommandError("CheckQuorum must be enabled when ReadOnlyOption is ReadOnlyLeaseBased");
  }
}

export function addNodes(environment: Environment, command: Command): void {
  allowOptions(command, optionNames);
  const count = numberAt(command, 0);
  const start = startOf(command);
  const asynchronous = parseTruth(option(command, "async-storage-writes") ?? "false");
  for (let made = 0; made < count; made++) {
    const config = configFor(command, environment.nodes.length + 1);
    refuseSettings(config);
    assertConfig(config);
    environment.nodes.push(new HarnessNode(config, asynchronous, start));
  }
}
