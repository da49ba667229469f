/** A lock with heirs on the real host and machine of one node, and those who hold it and wait. */
import { Int64 } from "../../../src/base/int64.js";
import { LockType } from "../../../src/base/result-types.js";
import type { LockAnswer, WaitControl } from "../../../src/operations/api/requests.js";
import { Bench, extendLock, lock, unlock } from "./fixture.js";

export const LEASE_MS = 5000;

export interface Wait {
  readonly owner: string;
  readonly answers: LockAnswer[];
  readonly control: WaitControl | null;
}

/** The numbers of an acquire are those of its owner, and rise with each try. */
function start(bench: Bench, owner: string, tryNumber: number, leaseMs: number): Wait {
  const answers: LockAnswer[] = [];
  const named = { waitId: Int64.fromNumber(idOf(owner)), tryNumber: Int64.fromNumber(tryNumber) };
  const request = { ...lock("r", owner, leaseMs), waitMs: 60_000, ...named };
  const context = { deadlineMs: bench.nowMs + 1e7, forwardHops: 0, requestId: "t" };
  const control = bench.operations.execute(request, context, (answer) => void answers.push(answer));
  return { owner, answers, control };
}

function idOf(owner: string): number {
  return 1 + Buffer.from(owner).reduce((sum, byte) => (sum * 256 + byte) % 2 ** 40, 0);
}

export function wait(bench: Bench, owner: string, tryNumber = 1, leaseMs = LEASE_MS): Wait {
  const begun = start(bench, owner, tryNumber, leaseMs);
  bench.world.settle();
  return begun;
}

export function tokenOf({ answers }: Wait): number {
  return answers[0]?.fencingToken.toNumber() ?? -1;
}

export function release(owner: string, token: number) {
  return { ...unlock("r", owner), fencingToken: Int64.fromNumber(token) };
}

export const isTold = ({ answers }: Wait): boolean => answers[0]?.type === LockType.locked;

export interface Hot {
  readonly bench: Bench;
  /** Whoever holds the lock now. */
  readonly holder: Wait;
  /** Those who wait, in order: all of them are heirs. */
  readonly heirs: Wait[];
}

export function listOf(bench: Bench): readonly string[] {
  const { reads } = bench.group(bench.partitionOf("r")).machine;
  const heirs = reads.succession("r")?.heirs ?? [];
  return heirs.map(({ owner }) => Buffer.from(owner).toString());
}

/** A lock that changed hands often, with `count` heirs. */
export function hot(count: number, bench = new Bench({ lockSuccession: true })): Hot {
  const waits = ["a", "b", "c", "d", "e"].map((owner) => wait(bench, owner));
  const heirs = Array.from({ length: count }, (_, at) => wait(bench, `h${at + 1}`));
  for (let at = 0; at < 4; at++) {
    const holder = waits[at] as Wait;
    bench.ask(release(holder.owner, tokenOf(holder)));
  }
  bench.world.pass(10);
  return { bench, holder: waits[4] as Wait, heirs };
}

export function releaseOf(bench: Bench, { owner }: Wait, token: number): LockAnswer[] {
  return bench.send(release(owner, token));
}

/** Nothing of the log is durable from now on. */
export function hold(bench: Bench): void {
  bench.world.log.automatic = false;
}

export function goOn(bench: Bench): void {
  bench.world.log.automatic = true;
  bench.world.log.sync();
  bench.world.settle();
}

export function extension(owner: string, token: number) {
  return { ...extendLock("r", owner, LEASE_MS), fencingToken: Int64.fromNumber(token) };
}
