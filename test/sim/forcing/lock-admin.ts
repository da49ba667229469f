/**
 * Somebody who holds locks of his own, waits for them and loses them, and an administrator who ends
 * grants of them by force, with tokens that are current and with old ones, through any node.
 *
 * Invariants: 1. Nobody else touches these locks. 2. What he draws is drawn from a generator of his
 * own. 3. An ask without an answer stays unknown. 4. In peace he asks for the audit until somebody
 * tells it.
 */
import { decodeText, encodeText } from "../../../src/base/bytes.js";
import { Int64 } from "../../../src/base/int64.js";
import type { Prng } from "../../../src/base/prng.js";
import { LockType } from "../../../src/machine/commands/command.js";
import type { LockAuditEntry } from "../../../src/operations/api/answers.js";
import type { DataAnswer, DataRequest } from "../../../src/operations/api/requests.js";
import type { AuditRow, Forced, LockEvent, LockId } from "../../judge/checkers/locks/forced.js";
import type { Server } from "../world/server.js";
import type { World } from "../world/world.js";

const PREFIX = "forced/";
const LOCKS = 3;
const EVERY_MS = 30;
const TIMEOUT_MS = 3000;
const AGAIN_MS = 300;

/** A grant as it was told. */
interface Known extends LockId {
  readonly owner: string;
  readonly token: bigint;
}

export class LockAdmin {
  readonly events: LockEvent[] = [];
  /** Null: not told yet. */
  rows: readonly AuditRow[] | null = null;
  private readonly prng: Prng;
  /** By lock; the newest last. */
  private readonly known = new Map<string, Known[]>();
  private asked = 0;

  /** `untilMs`: then peace begins. */
  constructor(
    private readonly world: World,
    private readonly servers: readonly Server[],
    private readonly untilMs: number,
    /** Mean time between two acts (ms). */
    private readonly everyMs = EVERY_MS,
  ) {
    this.prng = world.prng("lock admin");
  }

  start(): void {
    this.world.schedule(1 + this.prng.below(2 * this.everyMs), () => {
      if (this.world.nowMs >= this.untilMs) return this.readWhenAnswered();
      this.act();
      this.start();
    });
  }

  private act(): void {
    const { prng } = this;
    const resource = `${PREFIX}${prng.below(LOCKS)}`;
    const lock = { resource, durability: prng.chance(3, 4) ? 1 : 0 };
    const grants = this.known.get(keyOf(lock)) ?? [];
    const latest = grants.at(-1);
    const older = grants[prng.below(Math.max(1, grants.length))];
    const draw = prng.below(10);
    if (latest === undefined || older === undefined || draw < 4) return this.take(lock);
    if (draw < 6) return this.change(prng.chance(1, 3) ? older : latest, prng.chance(1, 3));
    this.force(prng.chance(1, 4) ? older : latest);
  }

  private take(lock: LockId): void {
    const { prng, world } = this;
    const owner = `owner-${++this.asked}`;
    const expiresMs = 200 + prng.below(3000);
    const sentMs = world.nowMs;
    const waitMs = prng.chance(1, 2) ? 200 + prng.below(1500) : 0;
    const note = prng.chance(1, 3) ? encodeText(owner) : null;
    const named = { ...lock, owner: encodeText(owner), expiresMs, waitMs, note };
    this.ask({ kind: "try-lock", ...named }, (answer) => {
      if (answer.kind !== "lock" || answer.type !== LockType.locked) return;
      const token = answer.fencingToken.toBigInt();
      const grants = this.known.get(keyOf(lock)) ?? [];
      this.known.set(keyOf(lock), grants);
      grants.push({ ...lock, owner, token });
      this.events.push({ kind: "grant", ...lock, owner, token, sentMs, atMs: world.nowMs });
    });
  }

  private change({ owner, token, ...lock }: Known, isUnlock: boolean): void {
    const { world } = this;
    const sentMs = world.nowMs;
    const named = { ...lock, owner: encodeText(owner), fencingToken: Int64.fromBigInt(token) };
    const request: DataRequest = isUnlock
      ? { kind: "try-unlock", ...named }
      : { kind: "try-extend", ...named, expiresMs: 500 + this.prng.below(2000), note: null };
    this.ask(request, (answer) => {
      const isDone = answer.type === LockType.unlocked || answer.type === LockType.extended;
      this.events.push({ kind: "change", ...lock, token, isDone, sentMs, atMs: world.nowMs });
    });
  }

  private force({ token, ...known }: Known): void {
    const { world, prng } = this;
    const { resource, durability } = known;
    const sentMs = world.nowMs;
    const reason = `reason-${++this.asked}`;
    const told = { resource, durability, token, reason, sentMs };
    const open: Forced = {
      ...{ kind: "forced", ...told, atMs: null },
      ...{ end: "unknown", owner: null, auditId: 0 },
    };
    const at = this.events.push(open) - 1;
    const dropWaiters = prng.chance(1, 4);
    const asked = { resource, durability, reason, dropWaiters, actor: "", nodeId: 0 };
    const request = { kind: "force-unlock", ...asked, fencingToken: Int64.fromBigInt(token) };
    this.ask(request as DataRequest, (answer) => {
      if (answer.kind !== "forced") return;
      const { owner, auditId } = answer;
      const end = endOf(answer);
      const by = owner === null ? null : decodeText(owner);
      this.events[at] = { ...open, atMs: world.nowMs, end, owner: by, auditId };
    });
  }

  /** What is still on its way may write rows yet. */
  private readWhenAnswered(): void {
    this.world.schedule(TIMEOUT_MS + AGAIN_MS, () => this.readAudit(null, []));
  }

  /** Asks for the rest of the audit behind `cursor`, of others again: a server may be down. */
  private readAudit(cursor: string | null, found: readonly LockAuditEntry[]): void {
    if (this.rows !== null) return;
    let isOver = false;
    const again = (): void => {
      if (isOver) return;
      isOver = true;
      this.readAudit(cursor, found);
    };
    this.world.schedule(AGAIN_MS, again);
    this.ask({ kind: "list-lock-audit", prefix: PREFIX, limit: 50, cursor }, (answer) => {
      if (isOver || answer.kind !== "lock-audit" || answer.type !== LockType.got) return;
      isOver = true;
      const items = [...found, ...answer.items];
      if (answer.nextCursor !== null) return this.readAudit(answer.nextCursor, items);
      this.rows = items.map(rowOf);
    });
  }

  private ask(request: DataRequest, told: (answer: DataAnswer) => void): void {
    const server = this.servers[this.prng.below(this.servers.length)] as Server;
    const { running } = server;
    if (running === null) return;
    const { life, operations } = running;
    const requestId = `admin-${this.events.length}`;
    life.enter(() => {
      const deadlineMs = life.monotonicMs() + TIMEOUT_MS;
      operations.execute(request, { deadlineMs, forwardHops: 0, requestId }, told);
    });
  }
}

function keyOf({ resource, durability }: LockId): string {
  return `${durability}${resource}`;
}

function endOf({ type, refusal }: DataAnswer): Forced["end"] {
  if (refusal !== null) return "refused";
  if (type === LockType.unlocked) return "unlocked";
  const isKnown = [LockType.doesNotExist, LockType.invalidOwner, LockType.aborted] as number[];
  return isKnown.includes(type) ? "refused" : "unknown";
}

function rowOf(entry: LockAuditEntry): AuditRow {
  const { auditId, partitionId, resource, durability, fencingToken, reason, stamp } = entry;
  const owner = decodeText(entry.owner) ?? "";
  const token = fencingToken.toBigInt();
  const row = { auditId, partitionId, resource, durability, owner, token, reason };
  return { ...row, stampMs: stamp.l };
}
