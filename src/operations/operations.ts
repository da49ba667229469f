/**
 * The door of this floor: admits requests, hands each to its operation, and sees to exactly one answer each.
 *
 * Owns the admission count. May call base, machine, control, host and this folder.
 * Invariants: 1. Every accepted request gets exactly one answer, never in the turn of the call. 2. Checks of the input
 * come before everything else. 3. A refusal (overloaded, not initialised, shutting down) had no effect.
 */
import { AssertionError } from "../base/assert.js";
import type { BlockKernels } from "../host/blocks.js";
import type { Node } from "../host/node.js";
import type { ClockPort, EntropyPort, LoggerPort, MeterPort, TimerPort } from "../ports.js";
import type * as Requests from "./requests.js";
import type { OperationsSettings } from "./settings.js";
import type { RequestObserver } from "./tally.js";

/** The part of the world that operations touch. */
export interface OperationsPorts {
  readonly clock: ClockPort;
  readonly timer: TimerPort;
  readonly logger: LoggerPort;
  readonly entropy: EntropyPort;
  readonly meter: MeterPort;
}

function pending(): never {
  throw new AssertionError("not written yet");
}

/* eslint-disable @typescript-eslint/no-unused-vars */
export class Operations implements Requests.OperationsPort {
  /** `kernels`: `createKernels(...)` of wasm fits. Attaches itself to every group of `node`, now and later. */
  constructor(
    _node: Node,
    _settings: OperationsSettings,
    _ports: OperationsPorts,
    _kernels: BlockKernels,
    _observer: RequestObserver,
  ) {}

  /** Data requests in progress, for `svc_inflight_requests`. */
  get inflight(): number {
    pending();
  }
  execute<R extends Requests.DataRequest>(
    _request: R,
    _context: Requests.RequestContext,
    _done: (answer: Requests.AnswerOf<R>) => void,
  ): void {
    pending();
  }
  invalidInput(_kind: Requests.DataRequestKind): Requests.DataAnswer {
    pending();
  }
  mustRetry(
    _kind: Requests.DataRequestKind,
    _refusal: Requests.Refusal | null,
  ): Requests.DataAnswer {
    pending();
  }
  health(): Requests.HealthAnswer {
    pending();
  }
  healthChecks(): readonly Requests.HealthCheck[] {
    pending();
  }
  fatalFault(): string | null {
    pending();
  }
  /** Called by the server when the process met a fatal fault and is about to end. */
  setFatalFault(_reason: string): void {
    pending();
  }
  membership(): Requests.MembershipAnswer {
    pending();
  }
  placement(): Requests.PlacementAnswer {
    pending();
  }
  routing(_keySpace: string): Requests.RoutingAnswer {
    pending();
  }
  ranges(_keySpace: string): Requests.RangesAnswer {
    pending();
  }
  leave(_context: Requests.RequestContext, _done: (answer: Requests.LeaveAnswer) => void): void {
    pending();
  }
  setReplicationFactor(
    _request: { readonly partitionId: number; readonly replicationFactor: number },
    _context: Requests.RequestContext,
    _done: (answer: Requests.ReplicationFactorAnswer) => void,
  ): void {
    pending();
  }
  registerRange(
    _keySpace: string,
    _context: Requests.RequestContext,
    _done: (answer: Requests.RegisterRangeAnswer) => void,
  ): void {
    pending();
  }
  unregisterRange(
    _keySpace: string,
    _context: Requests.RequestContext,
    _done: (answer: Requests.RegisterRangeAnswer) => void,
  ): void {
    pending();
  }
  splitRange(
    _request: { readonly keySpace: string; readonly splitKey: string },
    _context: Requests.RequestContext,
    _done: (answer: Requests.SplitRangeAnswer) => void,
  ): void {
    pending();
  }
  mergeRanges(
    _context: Requests.RequestContext,
    _done: (answer: Requests.MergeRangesAnswer) => void,
  ): void {
    pending();
  }
  backup(
    _request: Requests.BackupRequest,
    _context: Requests.RequestContext,
    _done: (answer: Requests.BackupRefusal) => void,
  ): void {
    pending();
  }
}
