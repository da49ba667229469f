/** Levels as apply decides them: what the cluster permits, what a group takes, who may be a member (5.5). */
import t from "tap";
import { FIRST_LEVEL, level, membershipVersion } from "../../../src/base/ids.js";
import { LEVEL_NUMBER_MAX } from "../../../src/base/limits.js";
import type { MetaOutcome, ProgramLevels } from "../../../src/machine/commands/command.js";
import { Bench } from "../../doubles/machine/bench.js";
import { newMember } from "../../doubles/machine/members.js";

function program(levelMin: number, levelMax: number, version = ""): ProgramLevels {
  return { levelMin: level(levelMin), levelMax: level(levelMax), version };
}

class Cluster {
  readonly bench = new Bench();

  meta(command: Parameters<Bench["one"]>[1]): string {
    const { status, generation } = this.bench.one(0, command) as MetaOutcome;
    return `${status} ${generation}`;
  }

  found(at: number, ...programs: ProgramLevels[]): string {
    const members = programs.map((has, index) => ({
      ...newMember(index + 1, `h${index + 1}:1`, `s${index + 1}`),
      ...has,
    }));
    const size = { clusterId: "c", dataPartitions: 2, replicationFactor: 0 };
    return this.meta({ kind: "found-cluster", ...size, level: level(at), members });
  }

  add(nodeId: number, has: ProgramLevels): string {
    const node = newMember(nodeId, `h${nodeId}:1`, `s${nodeId}`);
    return this.meta({ kind: "add-member", ...node, ...has });
  }

  update(nodeId: number, has: ProgramLevels): string {
    const node = newMember(nodeId, `h${nodeId}:1`, `s${nodeId}`);
    return this.meta({ kind: "update-member", ...node, ...has });
  }

  raise(to: number, version: number): string {
    const looked = membershipVersion(version);
    return this.meta({ kind: "raise-level", to: level(to), membershipVersion: looked });
  }

  get level(): number {
    return this.bench.machine.meta.cluster()?.level ?? 0;
  }
}

t.test(
  "P-030 U1 the level rises by one, when every member supports it, by the member list looked at",
  (t) => {
    const cluster = new Cluster();
    t.equal(cluster.raise(2, 1), "not-founded 0");
    for (const [at, first] of [
      [3, program(1, 2)],
      [1, program(2, 3)],
      [0, program(0, 1)],
      [1, program(2, 1)],
      [1, program(1, LEVEL_NUMBER_MAX + 1)],
      [1, program(1, 2, "é")],
      [1, program(1, 2, "x".repeat(65))],
    ] as const) {
      t.equal(cluster.found(at, first), "invalid 0");
    }
    t.equal(cluster.found(2, program(1, 2, "0.1.0"), program(2, 3)), "done 1");
    t.equal(cluster.level, 2);
    t.match(cluster.bench.machine.meta.member(1), { levelMin: 1, levelMax: 2, version: "0.1.0" });
    t.equal(cluster.raise(3, 1), "level-unsupported 2", "of the first member");
    t.equal(cluster.update(1, program(2, 3, "0.2.0")), "done 2", "another program, another line");
    t.equal(cluster.update(1, program(2, 3, "0.2.0")), "unchanged 2");
    t.equal(cluster.raise(3, 1), "stale 2", "another member list");
    t.equal(cluster.raise(4, 2), "invalid 2", "two at once");
    t.equal(cluster.raise(0, 2), "invalid 2");
    t.equal(cluster.raise(LEVEL_NUMBER_MAX + 1, 2), "invalid 2");
    t.equal(cluster.raise(3, 2), "done 3");
    t.equal(cluster.raise(3, 2), "unchanged 3", "a repeat");
    t.equal(cluster.raise(1, 2), "unchanged 3", "it never falls");
    t.equal(
      cluster.bench.machine.meta.cluster()?.membershipVersion,
      2,
      "the member list is the same",
    );
    t.equal(cluster.bench.machine.level, FIRST_LEVEL, "no group takes it by that");
    cluster.bench.flush();
    t.equal(new Bench(cluster.bench.store).machine.meta.cluster()?.level, 3);
    t.end();
  },
);

t.test("P-030 U1 learners and who leaves count as well", (t) => {
  for (const role of ["learner", "leaving"] as const) {
    const cluster = new Cluster();
    cluster.found(1, program(1, 2));
    t.equal(cluster.add(2, program(1, 1)), "done 2");
    if (role === "leaving") {
      for (const next of ["voter", "leaving"] as const) {
        cluster.meta({ kind: "set-member-role", nodeId: 2, role: next });
      }
    }
    const version = cluster.bench.machine.meta.cluster()?.membershipVersion ?? 0;
    t.equal(cluster.bench.machine.meta.member(2)?.role, role);
    t.equal(cluster.raise(2, version), "level-unsupported 1", role);
    t.equal(cluster.update(2, program(1, 2)), `done ${version + 1}`);
    t.equal(cluster.raise(2, version + 1), "done 2");
  }
  t.end();
});

t.test("P-030 U3 nobody joins, and nobody's line becomes, what cannot work at the level", (t) => {
  const cluster = new Cluster();
  cluster.found(2, program(1, 3));
  t.equal(cluster.add(2, program(1, 1)), "level-unsupported 1", "too old");
  t.equal(cluster.add(2, program(3, 4)), "level-unsupported 1", "too new");
  t.equal(cluster.add(2, program(0, 3)), "invalid 0");
  t.equal(cluster.add(2, program(2, 2, "1")), "done 2");
  t.equal(cluster.add(2, program(2, 2, "1")), "unchanged 2");
  t.equal(cluster.add(2, program(2, 3, "2")), "done 3", "it came again with another program");
  t.equal(cluster.add(2, program(1, 1)), "level-unsupported 3");
  t.equal(cluster.update(2, program(1, 1)), "level-unsupported 3");
  t.equal(cluster.update(2, program(2, 1)), "invalid 0");
  t.match(cluster.bench.machine.meta.member(2), program(2, 3, "2"));
  t.end();
});

t.test(
  "P-030 P-039 U2 a group is at what its own log says; snapshot, restart and digest have it",
  (t) => {
    const bench = new Bench();
    const set = (to: number): unknown => bench.one(0, { kind: "set-level", level: level(to) });
    t.equal(bench.machine.level, FIRST_LEVEL);
    const before = bench.machine.stateDigest;
    t.strictSame(set(1), { kind: "level", status: "unchanged", level: 1 });
    t.equal(bench.machine.stateDigest, before);
    t.strictSame(set(3), { kind: "level", status: "done", level: 3 });
    t.not(bench.machine.stateDigest, before);
    t.strictSame(set(3), { kind: "level", status: "unchanged", level: 3 }, "a repeat");
    t.strictSame(set(2), { kind: "level", status: "unchanged", level: 3 }, "it never falls");
    for (const wrong of [0, LEVEL_NUMBER_MAX + 1]) {
      t.strictSame(set(wrong), { kind: "level", status: "invalid", level: 3 });
    }
    bench.flush();
    t.equal(new Bench(bench.store).machine.level, 3, "after a restart");
    const source = bench.machine.openSnapshot(1 << 20);
    const chunk = source.next(1 << 20);
    if (chunk === "overrun") throw new Error("nothing changes meanwhile");
    const other = new Bench();
    const sink = other.machine.beginRestore();
    t.ok(sink.take(chunk.bytes).ok);
    other.machine.install(sink);
    t.equal(other.machine.level, 3, "of a snapshot");
    t.equal(other.machine.stateDigest, bench.machine.stateDigest);
    t.end();
  },
);
