/**
 * The workload of the crash test: workers that use locks, sequences and keys through both front ends and check, with
 * every answer, what the service promised. What timed out stays open until a read decides it.
 *
 * Invariants of the checks: 1. An attempt without an answer may or may not have happened, at any time after it was sent
 * and before it is decided; it never counts as failed. 2. Values, tokens and writes are compared over all restarts.
 * 3. Every check counts how often it really compared something.
 */
import { Prng } from "../../../src/base/prng.js";
import type { Answer, Call, CallResult } from "./clients.js";

const LOCKED = 0;
const EXTENDED = 2;
const UNLOCKED = 3;
const LOCK_FREE = 102;
const NOT_OWNER = 103;
const SUCCESS = 0;
const LEASE_MS = 3_600_000;
const KV_SET = 0;
const KV_GOT = 3;
const KV_DELETED = 4;
const KV_ABSENT = 103;

export type Send = (call: Call) => Promise<CallResult>;

/** What was seen, and what was wrong with it. */
export class Findings {
  operations = 0;
  unknowns = 0;
  readonly violations: string[] = [];
  readonly compared: Record<string, number> = {};

  count(check: string): void {
    this.compared[check] = (this.compared[check] ?? 0) + 1;
  }

  violation(text: string): void {
    if (this.violations.length < 20) this.violations.push(text);
  }
}

async function send(findings: Findings, sender: Send, call: Call): Promise<Answer | null> {
  const result = await sender(call);
  findings.operations += 1;
  if (result.kind === "answer") return result.answer;
  findings.unknowns += 1;
  return null;
}

/** One sequence shared by all: no value twice, and later calls get larger values. */
export class SequenceOracle {
  readonly name: string;
  private readonly findings: Findings;
  /** Handed-out ranges by start. Values are below 2^53 here. */
  private readonly owners = new Map<number, string>();
  private largestAnswered = 0;
  private readonly keyed = new Map<string, { readonly start: bigint; readonly end: bigint }>();

  constructor(name: string, findings: Findings) {
    this.name = name;
    this.findings = findings;
  }

  private take(answer: Answer, floor: number, who: string): void {
    const start = Number(answer.start);
    const end = Number(answer.end);
    for (let value = start; value <= end; value++) {
      const other = this.owners.get(value);
      if (other !== undefined) {
        this.findings.violation(
          `${this.name}: ${value} was handed out twice, to ${other} and ${who}`,
        );
      }
      this.owners.set(value, who);
    }
    this.findings.count("value unique");
    if (start <= floor) {
      this.findings.violation(`${this.name}: ${start} after ${floor} had been answered`);
    }
    this.findings.count("value order");
    this.largestAnswered = Math.max(this.largestAnswered, end);
  }

  async next(sender: Send, count: number, who: string): Promise<void> {
    const floor = this.largestAnswered;
    const call: Call =
      count === 1
        ? { op: "next", name: this.name, key: null }
        : { op: "reserve", name: this.name, count, key: null };
    const answer = await send(this.findings, sender, call);
    if (answer === null) return;
    if (answer.type !== SUCCESS || answer.end - answer.start !== BigInt(count - 1)) {
      this.findings.violation(`${this.name}: ${call.op} ${count} answered type ${answer.type}`);
      return;
    }
    this.take(answer, floor, who);
  }

  /** Repeats with one key until answered; every further repeat must be identical. */
  async keyedNext(sender: Send, key: string, who: string): Promise<void> {
    const floor = this.largestAnswered;
    let first = true;
    for (let attempt = 0; attempt < 50; attempt++) {
      const call: Call = { op: "next", name: this.name, key };
      const answer = await send(this.findings, sender, call);
      if (answer === null) continue;
      if (answer.type !== SUCCESS) {
        this.findings.violation(`${this.name}: keyed next answered type ${answer.type}`);
        return;
      }
      const known = this.keyed.get(key);
      if (known !== undefined) {
        if (known.start !== answer.start || known.end !== answer.end) {
          this.findings.violation(
            `${this.name}: key ${key} gave ${known.start}, then ${answer.start}`,
          );
        }
        this.findings.count("keyed replay identical");
      } else {
        this.keyed.set(key, { start: answer.start, end: answer.end });
        // An earlier attempt may have taken its value before others were answered: uniqueness holds, order need not.
        this.take(answer, first ? floor : -1, who);
      }
      if (!first || known !== undefined) return;
      first = false;
    }
  }

  /** After a restart: the current value covers everything that was handed out. */
  async verify(sender: Send): Promise<void> {
    const answer = await send(this.findings, sender, { op: "sequence", name: this.name });
    if (answer === null) return;
    if (Number(answer.current) < this.largestAnswered) {
      this.findings.violation(
        `${this.name}: current ${answer.current} below ${this.largestAnswered}`,
      );
    }
    this.findings.count("sequence kept");
  }
}

/**
 * One lock resource contended by all. Every attempt has an owner of its own and a lease longer than the test, so that a
 * grant is always new (its token above all that were answered before it was asked for), and exclusive until its unlock
 * is sent.
 */
export class LockOracle {
  readonly resource: string;
  private readonly findings: Findings;
  private largestToken = -1n;
  private holder: string | null = null;

  constructor(resource: string, findings: Findings) {
    this.resource = resource;
    this.findings = findings;
  }

  /** One attempt; when it is granted, perhaps an extension, then the release. */
  async cycle(sender: Send, owner: string, draw: Prng): Promise<void> {
    const floor = this.largestToken;
    const lock: Call = { op: "lock", resource: this.resource, owner, expiresMs: LEASE_MS };
    const answer = await send(this.findings, sender, lock);
    if (answer === null) {
      await this.release(sender, owner);
      return;
    }
    if (answer.type !== LOCKED) return;
    if (answer.token <= floor) {
      this.findings.violation(`${this.resource}: token ${answer.token} after ${floor}`);
    }
    this.findings.count("token grows");
    if (answer.token > this.largestToken) this.largestToken = answer.token;
    if (this.holder !== null) {
      this.findings.violation(
        `${this.resource}: granted to ${owner} while ${this.holder} holds it`,
      );
    }
    this.findings.count("one holder");
    this.holder = owner;
    if (draw.chance(1, 4)) await this.extend(sender, owner, answer.token);
    this.holder = null;
    await this.release(sender, owner);
  }

  private async extend(sender: Send, owner: string, token: bigint): Promise<void> {
    const call: Call = { op: "extend", resource: this.resource, owner, expiresMs: LEASE_MS };
    const answer = await send(this.findings, sender, call);
    if (answer === null) return;
    if (answer.type !== EXTENDED || answer.token !== token) {
      this.findings.violation(
        `${this.resource}: an acknowledged grant ${token} of ${owner} was lost (extend says ${answer.type}, ${answer.token})`,
      );
    }
    this.findings.count("grant kept");
  }

  /** Unlocks until answered, so that no attempt leaves the lock held for the rest of the test. */
  private async release(sender: Send, owner: string): Promise<void> {
    for (let attempt = 0; attempt < 2000; attempt++) {
      const call: Call = { op: "unlock", resource: this.resource, owner };
      const answer = await send(this.findings, sender, call);
      if (answer === null) continue;
      if (answer.type !== UNLOCKED && answer.type !== LOCK_FREE && answer.type !== NOT_OWNER) {
        this.findings.violation(`${this.resource}: unlock answered type ${answer.type}`);
      }
      return;
    }
    this.findings.violation(`${this.resource}: unlock of ${owner} was never answered`);
  }
}

interface Possible {
  readonly value: string | null;
  readonly note: string;
}

/** One key that only one worker writes: after any crash it holds the last acknowledged write or an open later one. */
export class KeyOracle {
  readonly key: string;
  private readonly findings: Findings;
  /** The state that is certain, and the attempts since that may or may not have happened. */
  private known: Possible = { value: null, note: "never set" };
  private maybe: Possible[] = [];
  private revision = -1n;
  /** Attempts without an answer since `revision` was learned: each may have taken a revision. */
  private openSinceRevision = 0n;
  private serial = 0;

  constructor(key: string, findings: Findings) {
    this.key = key;
    this.findings = findings;
  }

  async set(sender: Send): Promise<void> {
    this.serial += 1;
    const value = `${this.key}#${this.serial}`;
    const answer = await send(this.findings, sender, { op: "set", key: this.key, value });
    if (answer === null) {
      this.maybe.push({ value, note: `set ${this.serial} without an answer` });
      this.openSinceRevision += 1n;
      return;
    }
    if (answer.type !== KV_SET) {
      this.findings.violation(`${this.key}: set answered type ${answer.type}`);
      return;
    }
    this.advance(answer.revision);
    this.known = { value, note: `set ${this.serial} acknowledged` };
    this.maybe = [];
  }

  async remove(sender: Send): Promise<void> {
    const answer = await send(this.findings, sender, { op: "delete", key: this.key });
    if (answer === null) {
      this.maybe.push({ value: null, note: "delete without an answer" });
      this.openSinceRevision += 1n;
      return;
    }
    if (answer.type !== KV_DELETED && answer.type !== KV_ABSENT) {
      this.findings.violation(`${this.key}: delete answered type ${answer.type}`);
      return;
    }
    if (answer.type === KV_DELETED) this.advance(answer.revision);
    this.known = { value: null, note: "delete acknowledged" };
    this.maybe = [];
  }

  /** Reads, and decides what was open: from now on the observed state is the known one. */
  async verify(sender: Send): Promise<void> {
    const answer = await send(this.findings, sender, { op: "get", key: this.key });
    if (answer === null) return;
    const value = answer.type === KV_GOT ? answer.value : null;
    if (answer.type !== KV_GOT && answer.type !== KV_ABSENT) {
      this.findings.violation(`${this.key}: get answered type ${answer.type}`);
      return;
    }
    const allowed = [this.known, ...this.maybe];
    if (!allowed.some((possible) => possible.value === value)) {
      const list = allowed.map((possible) => `${possible.value} (${possible.note})`).join(", ");
      this.findings.violation(`${this.key}: holds ${value}; possible: ${list}`);
    }
    this.findings.count(this.maybe.length > 0 ? "open write decided" : "write kept");
    this.known = { value, note: "read" };
    this.maybe = [];
  }

  private advance(revision: bigint): void {
    const most = this.revision + 1n + this.openSinceRevision;
    if (revision <= this.revision || revision > most) {
      this.findings.violation(
        `${this.key}: revision ${revision} after ${this.revision} (at most ${most})`,
      );
    }
    this.findings.count("revision grows by one a write");
    this.revision = revision;
    this.openSinceRevision = 0n;
  }
}
