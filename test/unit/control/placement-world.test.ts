/**
 * The fixed point of placement: whatever happened, in peace the planners bring every partition to its factor on sound
 * nodes, evenly, and then rest; and on the way no rule is broken.
 */
import t from "tap";
import { Prng } from "../../../src/base/prng.js";
import { arrivalsFor, cancelOf, decideDrain } from "../../../src/control/drain.js";
import { wishedVoters } from "../../../src/control/group-plan.js";
import { PlacementWorld } from "../../doubles/control/placement-world.js";

t.setTimeout(240_000);

/** Of trouble, and longest until everything rests (ticks of 5 s; two hours, for the longest rest of a pair). */
const TROUBLE = 160;
const PEACE_MAX = 2000;
const QUIET = 20;

function isMetaSafe(world: PlacementWorld, without: number): boolean {
  const voters = world.now.members.filter(({ role }) => role === "voter");
  const live = voters.filter(({ nodeId }) => nodeId !== without && world.isUp(nodeId));
  return live.length * 2 > voters.length;
}

/** Every group would have a majority among those that will ever come back. */
function isLossBearable(world: PlacementWorld, lost: number): boolean {
  const comesBack = (id: number): boolean => id !== lost && world.nodes.get(id)?.isGone === false;
  return world.groups.every(({ membership, partition }) => {
    const listed = world.now.records.get(partition)?.replicas.map(({ nodeId }) => nodeId) ?? [];
    return [membership.voters, membership.votersOutgoing, listed].every((nodes) => {
      return nodes.length === 0 || nodes.filter(comesBack).length * 2 > nodes.length;
    });
  });
}

/** Whom others count on: voters of partitions of which a replica is on its way out. */
function neededNow({ now }: PlacementWorld): readonly number[] {
  const losing = [...now.records.values()].filter(({ replicas }) => {
    return replicas.some(({ role }) => role === "removing");
  });
  const voters = losing.flatMap(({ replicas }) => replicas.filter(({ role }) => role === "voter"));
  return voters.map(({ nodeId }) => nodeId);
}

function trouble(world: PlacementWorld, prng: Prng, most: number): void {
  const ids = [...world.nodes.keys()].filter((id) => !world.node(id).isGone);
  const needed = neededNow(world).filter((id) => ids.includes(id));
  const from = needed.length > 0 && prng.chance(1, 2) ? needed : ids;
  const id = from[prng.below(from.length)] ?? 1;
  const { members } = world.now;
  const role = members.find(({ nodeId }) => nodeId === id)?.role;
  switch (prng.below(14)) {
    case 0:
    case 1:
      if (isMetaSafe(world, id)) world.setUp(id, false);
      return;
    case 2:
    case 3:
    case 4:
      return world.setUp(id, true);
    case 5: {
      if (!prng.chance(1, 3) || !isMetaSafe(world, id) || !isLossBearable(world, id)) return;
      world.setUp(id, false);
      world.node(id).isGone = true;
      return;
    }
    case 6:
    case 7: {
      const partitionId = 1 + prng.below(world.groups.length);
      const replicationFactor = prng.chance(1, 6) ? 9 : prng.below(6);
      return world.decide({ kind: "set-replication-factor", partitionId, replicationFactor });
    }
    case 8: {
      if (role !== "voter" || !world.isUp(id)) return;
      const view = world.view();
      const others = members.filter((line) => line.nodeId !== id && line.role === "voter");
      const live = others.filter(({ nodeId }) => world.isUp(nodeId));
      const ofMeta = { otherVoters: [others.length], liveOtherVoters: [live.length] };
      const facts = { members, nodeId: id, metaLed: true, ...ofMeta };
      if (decideDrain(facts, view) !== "remove") return;
      return world.decide({ kind: "set-member-role", nodeId: id, role: "leaving" });
    }
    case 9: {
      if (role !== "leaving" || !prng.chance(1, 2)) return;
      world.decide({ kind: "set-member-role", nodeId: id, role: "voter" });
      const items = arrivalsFor([...world.now.records.values()], id).map(cancelOf);
      if (items.length > 0) world.decide({ kind: "change-replicas", items });
      return;
    }
    case 10: {
      const next = Math.max(...world.nodes.keys()) + 1;
      if (next <= most) world.addMember(next);
      return;
    }
    case 11: {
      const gone = members.find(({ nodeId }) => world.node(nodeId).isGone);
      const isDraining = members.some((one) => one.role === "leaving");
      if (gone !== undefined && !isDraining && prng.chance(1, 3)) world.evict(gone.nodeId);
      return;
    }
    case 12:
      return world.changeMetaLeader();
    default: {
      const group = world.groups[prng.below(world.groups.length)];
      if (group !== undefined) group.isSick = !group.isSick && prng.chance(1, 2);
    }
  }
}

function tellNodes({ nodes, now }: PlacementWorld): string {
  const roles = new Map(now.members.map(({ nodeId, role }) => [nodeId, role]));
  const told = [...nodes].map(([id, { isUp, isGone }]) => {
    return `${id} ${roles.get(id) ?? "removed"}${isGone ? " gone" : isUp ? "" : " down"}`;
  });
  return told.join(", ");
}

/** What is wrong in peace; "" when nothing is. */
function fault(world: PlacementWorld): string {
  const dead = world.dead();
  const { members, records } = world.now;
  const isSound = (id: number): boolean => {
    const line = members.find(({ nodeId }) => nodeId === id);
    return line !== undefined && line.role !== "leaving" && !line.evicted && !dead.has(id);
  };
  const waits = new Map(world.lastPlan?.waits.map((one) => [one.partitionId, one.reason]));
  const counts = new Map(members.filter(({ nodeId }) => isSound(nodeId)).map((m) => [m.nodeId, 0]));
  for (const group of world.groups) {
    const record = records.get(group.partition);
    if (record === undefined) return "a partition is lost";
    const voters = group.membership.voters;
    if (record.mode === "full") {
      const wish = [...wishedVoters(members)].sort((a, b) => a - b);
      if (voters.join() !== wish.join() && !members.some((m) => dead.has(m.nodeId))) {
        return `full mode: ${world.tell(group)}, wished ${wish.join()}`;
      }
      continue;
    }
    for (const id of voters) counts.set(id, (counts.get(id) ?? 0) + (isSound(id) ? 1 : 0));
    if (record.replicas.map(({ nodeId }) => nodeId).join() !== voters.join()) {
      return `record and configuration differ: ${world.tell(group)}`;
    }
    const isWhole = voters.length === world.wished(record) && voters.every(isSound);
    if (!isWhole && waits.get(group.partition) !== "no-node") {
      return `${world.tell(group)}, wished ${world.wished(record)}: ${waits.get(group.partition)}`;
    }
  }
  const sound = [...counts].filter(([id]) => isSound(id)).map(([, count]) => count);
  const isEven = Math.max(0, ...sound) - Math.min(Infinity, ...sound) <= 1;
  return isEven || sound.length === 0 ? "" : `uneven: ${[...counts].join(" ")}`;
}

t.test(
  "P-083 P-092 P-093 P-094 P-205 whatever happened, in peace placement converges and rests",
  (t) => {
    const seeds = Number(process.env["SVC_PLACEMENT_SEEDS"] ?? 100);
    const first = Number(process.env["SVC_PLACEMENT_SEED"] ?? 1);
    const seen: Record<string, number> = {};
    let longest = 0;
    for (let seed = first; seed < first + seeds; seed++) {
      const prng = new Prng(seed);
      const founders = 3 + prng.below(5);
      const world = new PlacementWorld(prng, founders, prng.below(6), 2 + prng.below(12));
      let ticks = 0;
      try {
        for (let at = 0; at < TROUBLE; at++) {
          if (prng.chance(1, 2)) trouble(world, prng, 12);
          world.tick();
        }
        for (const group of world.groups) group.isSick = false;
        for (const [id, { isGone }] of world.nodes) if (!isGone) world.setUp(id, true);
        world.isCalm = prng.chance(1, 2);
        for (let quiet = 0; quiet < QUIET && ticks < PEACE_MAX; ticks++) {
          world.tick();
          quiet = world.isQuiet && fault(world) === "" ? quiet + 1 : 0;
        }
        const wrong = fault(world);
        if (wrong !== "" || ticks === PEACE_MAX)
          t.fail(`seed ${seed}, ${ticks} ticks: ${wrong}; ${tellNodes(world)}`);
      } catch (error) {
        t.fail(`seed ${seed}: ${String(error)}`);
      }
      longest = Math.max(longest, ticks);
      for (const [what, count] of Object.entries(world.seen))
        seen[what] = (seen[what] ?? 0) + count;
      if (!t.passing()) return t.end();
    }
    t.comment(`longest peace ${longest} ticks; ${JSON.stringify(seen)}`);
    for (const [what, count] of Object.entries(seen)) t.ok(count > 0, `${what}: ${count}`);
    t.end();
  },
);
