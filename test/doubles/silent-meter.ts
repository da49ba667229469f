/** A meter that nobody reads. */
import type { MeterPort } from "../../src/ports.js";

export const SILENT_METER: MeterPort = {
  batchEntries: () => undefined,
  logSyncMs: () => undefined,
  commitMs: () => undefined,
  flushMs: () => undefined,
  lockGranted: () => undefined,
  locksLapsed: () => undefined,
  sequenceValues: () => undefined,
  replicaDigestMismatch: () => undefined,
  stampHeldBack: () => undefined,
  leaderChanged: () => undefined,
  electionEnded: () => undefined,
  applyMs: () => undefined,
  readRound: () => undefined,
  sequenceBlock: () => undefined,
};
