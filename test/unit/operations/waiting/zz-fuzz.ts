import { Int64 } from "../../../../src/base/int64.js";
import { LockType } from "../../../../src/base/result-types.js";
import { Bench, extendLock, info, lock, unlock } from "../../../doubles/operations/fixture.js";
import { World } from "../../../doubles/host/world.js";

class Rng {
  constructor(private s: number) {}
  next(n: number): number {
    this.s = (Math.imul(this.s, 1664525) + 1013904223) >>> 0;
    return Math.floor((this.s / 2 ** 32) * n);
  }
}
const LEASE = 3000;
interface Actor {
  name: string;
  owner: string;
  phase: "idle" | "waiting" | "holding" | "releasing";
  waitId: number;
  attempt: number;
  sentMs: number;
  token: number;
  until: number;
  control: any;
  lease: number;
  count: number;
}
const stats: Record<string, number> = {};
const note = (k: string) => (stats[k] = (stats[k] ?? 0) + 1);

function run(seed: number): string | null {
  const rng = new Rng(seed * 7919 + 1);
  const world = new World({}, seed);
  let flag = true;
  let bench = new Bench({ lockSuccession: true }, world);
  let life = 0;
  let ids = 1;
  const log: string[] = [];
  const say = (s: string) => log.push(`${bench.nowMs} ${s}`);
  const forced = new Set<number>();
  let topHeard = -1;
  let fault: string | null = null;
  const actors: Actor[] = Array.from({ length: 5 }, (_, i) => ({
    name: `x${i}`, owner: `x${i}`, phase: "idle", waitId: 0, attempt: 0, sentMs: 0, token: -1, until: 0, control: null, lease: LEASE, count: 0,
  }));
  const violate = (s: string) => { fault ??= s; say(`!! ${s}`); };
  const exec = (req: any, within: number, done: (a: any) => void) => {
    const mine = life;
    return bench.operations.execute(req, { deadlineMs: bench.nowMs + within, forwardHops: 0, requestId: "f" } as any, (a: any) => {
      if (mine === life) done(a);
    });
  };
  const ask = (a: Actor) => {
    a.attempt += 1 + rng.next(3);
    a.sentMs = bench.nowMs;
    const attempt = a.attempt; const waitId = a.waitId; const owner = a.owner;
    say(`${owner} asks try ${attempt}`);
    a.control = exec({ ...lock("r", owner, a.lease), waitMs: 60000, waitId: Int64.fromNumber(waitId), tryNumber: Int64.fromNumber(attempt) }, 100000, (ans) => {
      if (a.phase !== "waiting" || a.attempt !== attempt || a.owner !== owner) return;
      if (ans.type === LockType.locked) {
        a.token = ans.fencingToken.toNumber();
        a.until = a.sentMs + ans.waitedMs + ans.leaseLeftMs;
        say(`${owner} told ${a.token} until ${a.until}`);
        note("told");
        topHeard = Math.max(topHeard, a.token);
        a.phase = "holding"; a.count++;
        if (a.until <= bench.nowMs) return release(a);
        for (const o of actors) if (o !== a && o.phase === "holding" && o.until > bench.nowMs && !forced.has(o.token) && !forced.has(a.token)) violate(`two believe ${o.token} ${a.token}`);
        if (a.token < topHeard && !forced.has(a.token)) violate(`token ${a.token} after ${topHeard}`);
      } else if (ans.type === LockType.mustRetry || ans.type === LockType.busy) {
        a.phase = "waiting"; note("retry"); a.control = null;
      } else if (ans.type !== LockType.aborted) violate(`ask answered ${ans.type}`);
    });
  };
  const release = (a: Actor) => {
    a.phase = "releasing";
    const { token, owner } = a;
    say(`${owner} releases ${token}`);
    const believed = a.until > bench.nowMs;
    exec({ ...unlock("r", owner), fencingToken: Int64.fromNumber(token) }, 400, (ans) => {
      say(`${owner} release of ${token} answered ${ans.type}`);
      if (a.phase !== "releasing" || a.token !== token) return;
      if (ans.type === LockType.unlocked) { note("released"); a.phase = "idle"; }
      else if (ans.type === LockType.mustRetry || ans.type === LockType.aborted) { note("release again"); (a as any).doubt = true; }
      else { if (believed && !(a as any).doubt && !forced.has(token)) violate(`release of ${token} refused ${ans.type}`); a.phase = "idle"; }
      if (a.phase === "idle") (a as any).doubt = false;
    });
  };
  const extend = (a: Actor) => {
    const { token, owner } = a; const sent = bench.nowMs;
    a.until = Math.min(a.until, sent + a.lease);
    exec({ ...extendLock("r", owner, a.lease), fencingToken: Int64.fromNumber(token) }, 400, (ans) => {
      if (a.phase !== "holding" || a.token !== token) return;
      if (ans.type === LockType.extended) { if (a.until > bench.nowMs) a.until = Math.max(a.until, sent + a.lease); note("extended"); }
      else if (ans.type !== LockType.mustRetry && ans.type !== LockType.aborted) {
        if (a.until > bench.nowMs && !forced.has(token)) violate(`extend of ${token} refused ${ans.type}`);
        a.phase = "idle";
      }
    });
  };
  const reopen = (also: number) => {
    say(`crash also ${also}`); note("crash");
    world.log.automatic = true; life++;
    world.crash(also);
    if (rng.next(4) === 0) flag = !flag;
    bench = new Bench({ lockSuccession: flag }, world);
  };
  const begin = (a: Actor) => { a.phase = "waiting"; a.waitId = ids++; a.lease = LEASE; ask(a); };
  for (let step = 0; step < 500 && fault === null; step++) {
    const a = actors[rng.next(actors.length)] as Actor;
    const dice = rng.next(100);
    try {
      if (dice < 45) {
        if (a.phase === "idle") begin(a);
        else if (a.phase === "waiting") { if (a.control === null) ask(a); else if (rng.next(12) === 0) { if (rng.next(2) === 0) a.control.leave(rng.next(2) ? "left" : "cancelled"); ask(a); note("again"); } }
        else if (a.phase === "holding") release(a);
        else if (rng.next(3) === 0) release(a);
      } else if (dice < 50) { if (a.phase === "holding" && a.until > bench.nowMs) extend(a); }
      else if (dice < 53) { if (a.phase === "waiting" && a.control !== null) { a.control.leave(rng.next(2) ? "left" : "cancelled"); a.attempt += 5; a.phase = "idle"; note("gave up"); } }
      else if (dice < 54) { if (a.phase === "holding") { a.attempt += 5; a.phase = "idle"; a.owner = `${a.name}.${ids++}`; note("vanished"); } }
      else if (dice < 60) { world.log.automatic = rng.next(2) === 0; if (world.log.automatic) world.log.sync(); }
      else if (dice < 72) { world.log.sync(1); }
      else if (dice < 76) { bench.faults.propose = rng.next(2) === 0 ? null : (() => { const k = ["unlock-grant", "set-heirs", "append-heirs", "lock-heir"][rng.next(4)]; return (c: any) => (c.kind === k ? { status: "refused", reason: "overloaded" } as const : null); })(); }
      else if (dice < 78) { note("final"); const f = rng.next(3); bench.faults.final = f === 0 ? () => ({ status: "refused", reason: "overloaded" }) as const : null; bench.group(bench.partitionOf("r")).runStopHooks(bench.nowMs + 5000); say("stop hooks"); }
      else if (dice < 79) {
        const row = bench.group(bench.partitionOf("r")).machine.reads.succession("r");
        if (row?.isHeld && rng.next(3) === 0) {
          const token = Number(row.base.token);
          exec({ kind: "force-unlock", resource: "r", durability: 1, reason: "t", dropWaiters: rng.next(2) === 0, fencingToken: Int64.fromNumber(token), actor: "", nodeId: 0 }, 400, (ans) => { if (ans.type === LockType.unlocked) note("forced"); });
          forced.add(token); say(`force ${token}`);
        }
      }
      else if (dice < 80) { if (rng.next(2) === 0) { const p = rng.next(3); reopen(p); for (const o of actors) { o.control = null; if (o.phase === "waiting") ask(o); else if (o.phase === "releasing") (o as any).doubt = true; } } }
      else if (dice < 83) exec(info("r"), 300, () => undefined);
      else if (dice < 85) exec(lock("r", a.owner + "z", 500), 300, (ans) => { if (ans.type === LockType.locked) { note("outsider"); for (const o of actors) if (o.phase === "holding" && o.until > bench.nowMs && !forced.has(o.token)) violate(`outsider ${ans.fencingToken.toNumber()} beside ${o.token}`); topHeard = Math.max(topHeard, ans.fencingToken.toNumber()); } });
      else if (dice < 97) world.settle();
      else world.pass(rng.next(20) === 0 ? 2500 : rng.next(60));
      const kinds = bench.commands.splice(0);
      for (const c of kinds) note(c.kind);
    } catch (e) { violate(`thrown ${(e as Error).stack}`); }
  }
  if (fault === null) {
    say("peace");
    bench.faults.propose = null; bench.faults.final = null; world.log.automatic = true; world.log.sync();
    try {
      for (let round = 0; round < 400; round++) {
        world.pass(50, 10);
        let open = 0;
        for (const a of actors) {
          if (a.phase === "waiting") { open++; if (a.control === null || round % 10 === 9) ask(a); }
          else if (a.phase === "holding" || a.phase === "releasing") { open++; release(a); }
        }
        world.settle();
        if (open === 0) break;
        if (round === 399) violate(`open: ${actors.filter((x) => x.phase !== "idle").map((x) => x.owner + x.phase)}`);
      }
    } catch (e) { violate(`thrown ${(e as Error).stack}`); }
  }
  return fault === null ? null : `seed ${seed}: ${fault}\n${log.slice(-60).join("\n")}`;
}
const first = Number(process.argv[2] ?? 1);
const count = Number(process.argv[3] ?? 50);
let bad = 0;
for (let seed = first; seed < first + count; seed++) {
  const r = run(seed);
  if (r !== null) { console.log(r); if (++bad >= 2) break; }
}
console.log(JSON.stringify(stats));
