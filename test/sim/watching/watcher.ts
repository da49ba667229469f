/**
 * A client that watches: it has some watches on one stream, reads fast, slowly or not at all for a
 * time, keeps cursors, goes on from the newest or an older one at the same or another node, asks for
 * barriers, and begins anew.
 *
 * It lives outside of all machines. Invariants: 1. What it is told goes to the checkers as it came. 2.
 * A watch that ended is asked for again. 3. In peace it reads at once, and comes to stand.
 */
import { decodeText } from "../../../src/base/bytes.js";
import type { Prng } from "../../../src/base/prng.js";
import { WatchEnd, WatchKind, WatchMessageType } from "../../../src/base/result-types.js";
import { WATCH_MESSAGE_BYTES } from "../../../src/base/limits.js";
import type { WatchMessage, WatchRequest } from "../../../src/operations/api/watching/watches.js";
import type { Changes } from "../../judge/checkers/watches/changes.js";
import { type Mark, type ToldEvent, ToldWatch } from "../../judge/checkers/watches/told-watch.js";
import type { WatchBounded } from "../../judge/checkers/watches/watch-bounded.js";
import type { WatchFindings } from "../../judge/checkers/watches/watch-findings.js";
import { pick } from "../clients/workload.js";
import type { Plan } from "../plan/plan.js";
import type { Server } from "../world/server.js";
import type { World } from "../world/world.js";
import { drawName, isOfMany } from "./watched-names.js";
import { WatchLink } from "./watchlink.js";
import { AMPLE_HISTORY_BYTES, type WatchPlan } from "./watchplan.js";

/** Cursors that are kept of a watch. */
const MARKS_MAX = 6;
/** A watch that goes on within this time at the same node is told each change (W5, ms). */
const EXACT_MS = 50_000;
/** So many nodes in a row may lack something before another thing is watched. */
const REFUSALS_MAX = 8;
/** A full message and the largest event beside it (bytes). */
const MESSAGE_MAX_BYTES = WATCH_MESSAGE_BYTES + 20_000;

export interface WatcherParts {
  readonly world: World;
  readonly plan: Plan;
  readonly watches: WatchPlan;
  readonly servers: readonly Server[];
  readonly changes: Changes;
  readonly findings: WatchFindings;
  readonly bounded: WatchBounded;
  readonly counts: Record<string, number>;
}

interface KeptMark {
  readonly mark: Mark;
  /** Node, life, and what it had in memory. */
  readonly place: string;
  readonly atMs: number;
}

/** One watch, over all streams that it goes on at. */
interface Slot {
  readonly at: number;
  readonly request: Omit<WatchRequest, "cursor">;
  readonly told: ToldWatch;
  marks: KeptMark[];
  /** On the present stream; 0: it is not there. */
  watchId: number;
  isCreated: boolean;
  /** Where each change is owed from, as long as that place is as it was. */
  owedAt: string;
  /** What the place was like when the watch was asked for there: how far it is may be from then. */
  askedAt: string;
  /** Nodes in a row that had not all of it. */
  refusals: number;
}

interface Barrier {
  sentMs: number;
  /** The slots with the watch that each had then. */
  readonly of: readonly (readonly [Slot, number])[];
}

export class Watcher {
  private readonly prng: Prng;
  private readonly slots: Slot[] = [];
  private readonly readMs: number;
  private link: WatchLink | null = null;
  private readonly barriers = new Map<number, Barrier>();
  /** Where each message was given away: it may be read much later. */
  private readonly places = new WeakMap<WatchMessage, string>();
  private serial = 0;
  private isStopped = false;
  private isQuiet = false;
  private isGone = false;

  constructor(
    private readonly parts: WatcherParts,
    private readonly number: number,
  ) {
    const { world, watches } = parts;
    this.prng = world.prng(`watcher ${number}`);
    this.readMs = this.prng.chance(watches.slowPercent, 100) ? watches.readMs : 0;
    const count = 1 + this.prng.below(watches.watchesMax);
    for (let at = 1; at <= count; at++) this.slots.push(this.drawSlot(at));
  }

  start(): void {
    this.later(this.prng.below(1500), () => this.connect());
    this.act();
  }

  /** Faults have ended: from now on it reads at once. */
  settle(): void {
    this.isQuiet = true;
    this.link?.hurry();
  }

  /** It goes nowhere any more. */
  stop(): void {
    this.isStopped = true;
  }

  /** Every watch stands at a node. */
  get isStanding(): boolean {
    return this.isGone || this.slots.every(({ isCreated }) => isCreated);
  }

  get hasBarriers(): boolean {
    return this.barriers.size > 0;
  }

  get name(): string {
    return `watcher ${this.number}`;
  }

  /** What it watches, and stands. */
  watched(): ToldWatch[] {
    return this.slots.filter(({ isCreated }) => isCreated).map(({ told }) => told);
  }

  get size(): number {
    return this.slots.length;
  }

  /** It watches nothing any more. */
  leave(): void {
    this.isGone = true;
    this.drop();
  }

  private later(delayMs: number, then: () => void): void {
    this.parts.world.schedule(delayMs, () => {
      if (!this.isGone) then();
    });
  }

  private count(name: string): void {
    const { counts } = this.parts;
    counts[name] = (counts[name] ?? 0) + 1;
  }

  // What it watches ------------------------------------------------------------------------------

  private drawSlot(at: number, [kind, name] = drawName(this.prng, this.parts.plan)): Slot {
    const { prng } = this;
    const { changes, findings } = this.parts;
    const isFrom = kind === WatchKind.key && prng.chance(1, 4);
    const request = {
      ...{ kind, name, noValues: prng.chance(1, 6) },
      initial: !isFrom && prng.chance(1, 2),
      fromRevision: isFrom ? BigInt(prng.below(4)) - 1n : null,
      only: prng.chance(1, 10) ? 2 + 8 + 16 + 64 : 0,
      progressMs: prng.chance(1, 2) ? 0 : 100 + prng.below(1000),
    };
    const { initial, noValues, only } = request;
    const ask = { kind, name, initial, noValues, only, hasFrom: isFrom };
    const id = `watch ${this.number}.${at} of ${name} (kind ${kind})`;
    const told = new ToldWatch(id, ask, changes, findings);
    const none = { marks: [], watchId: 0, isCreated: false, owedAt: "", askedAt: "", refusals: 0 };
    return { at, request, told, ...none };
  }

  // Where it watches -----------------------------------------------------------------------------

  private connect(at: Server | null = null): void {
    if (this.link !== null) return;
    const { world, servers, watches } = this.parts;
    const server = at ?? pick(this.prng, servers);
    const { running } = server;
    if (running === null) return this.later(50 + this.prng.below(100), () => this.connect());
    const readMs = this.isQuiet ? 0 : this.readMs;
    const link: WatchLink = new WatchLink(
      ...([world, servers, server, running, watches.bufferBytes, readMs, this.prng] as const),
      {
        came: (message, sentMs, elsewhere) => {
          if (this.link === link) this.came(message, sentMs, elsewhere);
        },
        given: (isFull, message, sizeBytes) => {
          this.places.set(message, this.placeOf(link));
          this.given(isFull, message, sizeBytes);
        },
        becameFull: () => this.parts.bounded.full(),
        lost: () => {
          if (this.link !== link) return;
          this.count("streams lost");
          this.drop();
          this.later(this.prng.below(300), () => this.connect());
        },
      },
    );
    this.link = link;
    for (const slot of this.slots) this.create(slot);
  }

  private drop(): void {
    this.link?.close();
    this.link = null;
    this.barriers.clear();
    for (const slot of this.slots) {
      slot.watchId = 0;
      slot.isCreated = false;
    }
  }

  private create(slot: Slot): void {
    const { prng, link } = this;
    const { world, watches, findings } = this.parts;
    if (link === null || slot.watchId !== 0) return;
    const watchId = ++this.serial;
    slot.watchId = watchId;
    const isAnew = prng.chance(watches.anewPercent, 100) || slot.marks.length === 0;
    const isOlder = prng.chance(watches.olderPercent, 100);
    const mark = isAnew ? null : isOlder ? pick(prng, slot.marks) : (slot.marks.at(-1) ?? null);
    if (mark === null) slot.marks = [];
    // What came behind an older cursor is told again.
    else slot.marks = slot.marks.slice(0, slot.marks.indexOf(mark) + 1);
    const place = this.placeOf(link);
    // An end that has to be found in a row is lost with it.
    const { tombstoneRetentionMs: keyMs = EXACT_MS, lockRecordRetentionMs: lockMs = EXACT_MS } =
      watches.host;
    const exactMs = Math.min(EXACT_MS, keyMs / 2, lockMs / 2);
    const isSame = mark?.place === place && world.nowMs - mark.atMs < exactMs;
    const isOwed = isSame && this.keepsAll;
    if (mark !== null) {
      findings.resume.count("resumes");
      if (isOwed) findings.resume.count("resumes at the same node");
      if (mark.place.split("/")[0] !== `${link.server.nodeId}`) {
        findings.resume.count("resumes elsewhere");
      }
    }
    slot.owedAt = isOwed ? place : "";
    slot.askedAt = place;
    const request: WatchRequest = { ...slot.request, cursor: mark?.mark.cursor ?? null };
    link.create(watchId, request, () => {
      if (this.link !== link || slot.watchId !== watchId) return;
      slot.told.begin(mark?.mark ?? null, world.nowMs, isOwed);
      this.say(
        `asks node ${link.server.nodeId} for ${slot.told.id}, ${mark === null ? "anew" : "on"}`,
      );
    });
  }

  /** Nothing that happened is forgotten in the time of the world. */
  private get keepsAll(): boolean {
    const { plan, watches } = this.parts;
    const isStill = plan.ranges === null && plan.placer === null;
    return isStill && watches.operations.watchHistoryBytes === AMPLE_HISTORY_BYTES;
  }

  /**
   * Node, life, and what replaced the rows that it has; and the levels of its groups, as what they
   * collected below the level that tells of it is not known.
   */
  private placeOf(link: WatchLink): string {
    const groups = link.server.running?.node.groups() ?? [];
    const images = groups.map(
      ({ partition, machine }) => `${partition}:${machine.installed.index}:${machine.level}`,
    );
    return `${link.server.nodeId}/${link.life}/${images.join()}`;
  }

  // What it does -------------------------------------------------------------------------------

  private act(): void {
    this.later(1 + this.prng.below(2 * this.parts.watches.actMs), () => {
      if (this.isStopped) return;
      if (this.link !== null) this.doSomething(this.link);
      this.act();
    });
  }

  private doSomething(link: WatchLink): void {
    const { prng } = this;
    const drawn = prng.below(100);
    if (drawn < 35) return this.barrier(prng.chance(1, 2));
    if (drawn < 55) return this.leaveOne(link);
    if (drawn < 70) {
      if (!this.isQuiet) link.standStill(100 + prng.below(1500));
      return this.count("stood still");
    }
    if (drawn < 90) return this.goElsewhere(link);
  }

  /** One watch ends, and goes on at the same stream later. */
  private leaveOne(link: WatchLink): void {
    const slot = pick(this.prng, this.slots);
    if (slot.watchId === 0) return;
    link.cancel(slot.watchId);
    this.count("cancelled");
  }

  private goElsewhere({ server }: WatchLink): void {
    const { prng } = this;
    this.drop();
    this.count("went elsewhere");
    const at = prng.chance(1, 3) ? server : null;
    this.later(prng.below(at === null ? 300 : 2500), () => this.connect(at));
  }

  /** Asks for a barrier of all of its watches or of one. */
  barrier(isOfAll: boolean): void {
    const { link } = this;
    if (link === null) return;
    const syncId = ++this.serial;
    const one = pick(this.prng, this.slots);
    const asked = isOfAll ? this.slots : [one];
    if (!isOfAll && one.watchId === 0) return;
    link.sync(syncId, isOfAll ? 0 : one.watchId, () => {
      if (this.link !== link) return;
      const of = asked.map((slot) => [slot, slot.watchId] as const);
      this.barriers.set(syncId, { sentMs: this.parts.world.nowMs, of });
    });
  }

  // What it is told ------------------------------------------------------------------------------

  private given(isFull: boolean, { type }: WatchMessage, sizeBytes: number): void {
    const isEnd = type === WatchMessageType.ended;
    this.parts.bounded.delivered(this.name, isFull, isEnd, sizeBytes, MESSAGE_MAX_BYTES);
  }

  private came(message: WatchMessage, sentMs: number, elsewhere: Server | null): void {
    if (message.type === WatchMessageType.synced) return this.synced(message.syncId);
    for (const watchId of message.watchIds) {
      const slot = this.slots.find((one) => one.watchId === watchId);
      if (slot !== undefined) this.cameTo(slot, message, sentMs, elsewhere);
    }
  }

  private cameTo(
    slot: Slot,
    message: WatchMessage,
    sentMs: number,
    elsewhere: Server | null,
  ): void {
    const { told } = slot;
    const { link } = this;
    this.sayMessage(slot, message);
    if (link === null) return;
    switch (message.type) {
      case WatchMessageType.ended:
        return this.endedOne(slot, message.end, elsewhere);
      case WatchMessageType.created:
        told.created(sentMs);
        slot.isCreated = true;
        slot.refusals = 0;
        break;
      default:
    }
    const { events, cursor, initial, merged, reset } = message;
    if (slot.owedAt !== "" && slot.owedAt !== this.placeOf(link)) told.excuse();
    const mark = told.told({ events: events.map(toldOf), cursor, initial, merged, reset, sentMs });
    // What it began with is no newer than it was.
    if (mark === null || (message.type === WatchMessageType.created && slot.marks.length > 0))
      return;
    const given = this.places.get(message) ?? "";
    const place = given === slot.askedAt ? given : `${link.server.nodeId}/changed`;
    slot.marks.push({ mark, place, atMs: this.parts.world.nowMs });
    if (slot.marks.length > MARKS_MAX) slot.marks.shift();
  }

  private endedOne(slot: Slot, end: number, elsewhere: Server | null): void {
    const name = Object.entries(WatchEnd).find(([, number]) => number === end)?.[0] ?? `${end}`;
    this.count(`ended: ${name}`);
    slot.watchId = 0;
    slot.isCreated = false;
    if (end === WatchEnd.cancelled) {
      return this.later(this.prng.below(2500), () => this.create(slot));
    }
    if (end === WatchEnd.invalidInput || end === WatchEnd.forbidden) {
      this.parts.findings.order.violation(`${slot.told.id} is refused: ${name}`);
    }
    if (end === WatchEnd.notHosted) this.giveUp(slot);
    if (elsewhere !== null) this.count("routes followed");
    // Another node may have what it wants.
    this.drop();
    this.later(50 + this.prng.below(400), () => this.connect(elsewhere));
  }

  /** Where no node has all of a prefix, another name is watched in the end. */
  private giveUp({ at, request }: Slot): void {
    const slot = this.slots[at - 1] as Slot;
    if (
      !isOfMany(request.kind) ||
      ++slot.refusals < REFUSALS_MAX ||
      this.parts.plan.placer === null
    )
      return;
    const { plan } = this.parts;
    let drawn = drawName(this.prng, plan);
    while (isOfMany(drawn[0])) drawn = drawName(this.prng, plan);
    this.slots[at - 1] = this.drawSlot(at, drawn);
    this.count("given up, as no node has it");
  }

  private synced(syncId: number): void {
    const barrier = this.barriers.get(syncId);
    const { findings, plan } = this.parts;
    const { barrier: of } = findings;
    if (barrier === undefined) return of.violation(`watcher ${this.number}: a barrier of its own`);
    this.barriers.delete(syncId);
    of.count("barriers");
    const partitions = plan.host.initialPartitions ?? 1;
    for (const [slot, watchId] of barrier.of) {
      if (slot.watchId !== watchId || watchId === 0 || !slot.isCreated) continue;
      if (isOfMany(slot.request.kind) && partitions >= 3)
        of.count("barriers over three partitions");
      const missing = slot.told.missing(barrier.sentMs);
      if (missing === null) continue;
      const before = `${barrier.sentMs.toFixed(0)} ms`;
      of.violation(`${slot.told.id} is level with ${before}, without ${missing}`);
    }
  }

  private say(text: string): void {
    const { world } = this.parts;
    if (world.trace.hasWords) world.say(0, `watcher ${this.number} ${text}`);
  }

  private sayMessage(slot: Slot, message: WatchMessage): void {
    if (!this.parts.world.trace.hasWords) return;
    const { type, events, initial, merged, reset, end, cursor } = message;
    const flags = Object.entries({ initial, merged, reset, cursor: cursor !== null, end: end > 0 });
    const set = flags.filter(([, is]) => is).map(([name]) => name);
    const what = events.map((each) => `${each.type} ${each.name} r${each.revision} f${each.token}`);
    this.say(
      `gets for ${slot.told.id}: type ${type} ${set.join()} ${what.join("; ")}`.slice(0, 300),
    );
  }
}

function toldOf(event: WatchMessage["events"][number]): ToldEvent {
  const { type, name, revision, token, value, sequence, stamp } = event;
  const text = value === null ? null : decodeText(value);
  const incarnation = sequence?.incarnation ?? 0;
  return { type, name, revision, token, value: text, stamp, incarnation };
}
