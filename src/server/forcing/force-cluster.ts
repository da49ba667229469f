/**
 * `--force-new-cluster`: makes a cluster of one out of the directory of a node whose cluster lost
 * its majority for good (contract 7.7).
 *
 * Invariants: 1. Refusals come first, then the report, then the confirmation: nothing of the
 * directory is changed before that. 2. Whatever a crash leaves, the same command with the same id
 * brings to its end, and nothing else does.
 */
import { existsSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline/promises";
import { PROGRAM } from "../../base/levels.js";
import { type Result, failure, ok } from "../../base/result.js";
import { decodeText } from "../../base/bytes.js";
import {
  type Forcing,
  type ForcedDirectory,
  finishForced,
  forcedIdentity,
  noteForcing,
  openForced,
} from "../../disk/forcing.js";
import { ForcedState, type SurveyedPartition } from "../../host/restoring/forced-state.js";
import {
  type RestoredMark,
  decodeRestoredMark,
  encodeRestoredMark,
} from "../../host/restoring/restored-mark.js";
import { NO_FLOORS } from "../../host/restoring/claims.js";
import type { RestoreDone } from "../../host/restoring/restore-faults.js";
import { placeOfRow } from "../../machine/store/row-place.js";
import type { LoggerPort } from "../../ports.js";
import { processFatal, systemClock, systemTimers } from "../../sys.js";
import { createKernels } from "../../wasm/kernels.js";
import type { ServerConfig } from "../flags/config.js";
import type { ForceOrder } from "../flags/force-flags.js";
import { randomHex } from "../listeners/peers.js";

/** How it talks with the operator. */
export interface ForceConsole {
  readonly isTerminal: boolean;
  print(text: string): void;
  ask(question: string): Promise<string>;
}

export const systemConsole: ForceConsole = {
  isTerminal: process.stdin.isTTY && process.stderr.isTTY,
  print: (text) => process.stdout.write(text),
  async ask(question) {
    const reader = createInterface({ input: process.stdin, output: process.stderr });
    try {
      return await reader.question(question);
    } finally {
      reader.close();
    }
  },
};

type Forced = Result<null, string>;

/** The failure's message says why nothing was done, or what to do. */
export async function forceNewCluster(
  config: ServerConfig,
  order: ForceOrder,
  logger: LoggerPort,
  talk: ForceConsole,
): Promise<Forced> {
  const { storagePath: path, storageRevision: revision, walPath } = config;
  const found = forcedIdentity({ path, revision });
  if (!found.ok) return found;
  if (found.value === null) return failure("refused", `${path}/${revision} holds no cluster`);
  if (found.value.clusterId !== order.clusterId) {
    const remedy = "the right id stands in the log of the server, where it says that it started";
    return failure("refused", `${path}/${revision} is of another cluster: ${remedy}`);
  }
  const { nodeId } = found.value;
  if (nodeId !== null && nodeId !== config.nodeId) {
    const whose = `${path}/${revision} belongs to node ${nodeId}, not to node ${config.nodeId}`;
    return failure("refused", `${whose}: give --raft-nodeid ${nodeId}`);
  }
  const opened = await new Promise<Result<ForcedDirectory, string>>((resolve) => {
    openForced(
      {
        ...{ path, revision, walPath, maxBytes: config.storageMaxBytes, program: PROGRAM },
        kernels: createKernels({ mode: config.kernels }),
      },
      {
        ...{ timers: systemTimers, logger, clock: systemClock, placeOfRow },
        fatal: processFatal(() => undefined),
        meter: SILENT,
      },
      resolve,
    );
  });
  if (!opened.ok) return opened;
  const directory = opened.value;
  const state = new ForcedState(directory.store, directory.log, systemTimers);
  const done = await carryOut(order, directory, state, talk);
  await new Promise<void>((resolve) => directory.close(resolve));
  return done;
}

const SILENT = { logSyncMs: () => undefined };

async function carryOut(
  order: ForceOrder,
  directory: ForcedDirectory,
  state: ForcedState,
  talk: ForceConsole,
): Promise<Forced> {
  const { home } = directory;
  const before = markOf(home);
  if (!before.ok) return before;
  const forcing: Forcing = directory.forcing ?? {
    ...{ fromClusterId: order.clusterId, clusterId: randomHex(32), phase: "lifting" },
    ordinal: (before.value?.forcedCount ?? 0) + 1,
  };
  if (forcing.phase === "lifting") {
    const fault = state.survey();
    if (fault !== null) return fault;
    talk.print(reportText(state.report(), systemClock.wallMs()));
    if (!(await isConfirmed(order, talk)))
      return failure("refused", "not confirmed: nothing is done");
    const replayed = await step((next) => state.replay(next));
    if (!replayed.ok) return replayed;
    const noted = noteForcing(home, forcing);
    if (!noted.ok) return noted;
    const { clusterId, ordinal } = forcing;
    const earlier = before.value ?? NO_FLOORS;
    const lifted = await step((next) => state.lift({ clusterId, ordinal, earlier }, next));
    if (!lifted.ok) return lifted;
    const ended = noteForcing(home, { ...forcing, phase: "lifted" });
    if (!ended.ok) return ended;
  } else if (!(await isConfirmed(order, talk))) {
    return failure("refused", "not confirmed: nothing is done");
  }
  const forgotten = await step((next) => state.forget(next));
  if (!forgotten.ok) return forgotten;
  await new Promise<void>((resolve) => state.close(resolve));
  await new Promise<void>((resolve) => directory.close(resolve));
  const mark = encodeRestoredMark({
    ...{ clusterId: forcing.clusterId, leafId: "", ordinal: forcing.ordinal },
    ...{ forcedCount: forcing.ordinal, atMs: Math.floor(systemClock.wallMs()), ...state.floors },
  });
  const finished = finishForced(directory, decodeText(mark) ?? "");
  if (!finished.ok) return finished;
  talk.print(`The directory now holds cluster ${forcing.clusterId}: start the server on it.\n`);
  return ok(null);
}

/** What restores and earlier acts noted in the directory; null where there was none. */
function markOf(home: string): Result<RestoredMark | null, string> {
  const path = `${home}/restored.json`;
  return existsSync(path) ? decodeRestoredMark(path, readFileSync(path)) : ok(null);
}

function step(call: (next: RestoreDone<unknown>) => void): Promise<Result<unknown, string>> {
  return new Promise((resolve) => call(resolve));
}

async function isConfirmed({ isConfirmed: yes }: ForceOrder, talk: ForceConsole): Promise<boolean> {
  if (yes) return true;
  if (!talk.isTerminal) return false;
  const question = "What is above the applied indexes is lost. Make a new cluster of this? yes/no ";
  return (await talk.ask(question)).trim() === "yes";
}

function ageText(heardMs: number, nowMs: number): string {
  if (heardMs === 0) return "never";
  return `${Math.max(0, Math.round((nowMs - heardMs) / 1000))} s ago`;
}

/** What the operator is told before anything is done. */
export function reportText(partitions: readonly SurveyedPartition[], nowMs: number): string {
  const lines = partitions.map((found) => {
    const { partition, isMissing, appliedIndex, commitIndex, lastIndex, leader, heardMs } = found;
    if (isMissing) return `partition ${partition}: not on this node; it will be empty`;
    const known = `committed as far as known ${commitIndex}`;
    const from = `from node ${leader}, ${ageText(heardMs, nowMs)}`;
    const beyond = lastIndex > commitIndex ? `; ${lastIndex - commitIndex} entries given up` : "";
    return `partition ${partition}: applied index ${appliedIndex}, ${known} (${from})${beyond}`;
  });
  const lost = "Whatever was acknowledged above these indexes is lost.";
  return `${lines.join("\n")}\n${lost}\n`;
}
