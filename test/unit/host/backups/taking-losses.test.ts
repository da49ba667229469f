/** What is lost while a backup is taken: nodes, frames, the disk, the caller. Whole, or nothing. */
import t from "tap";
import type { BackupRequest } from "../../../../src/host/backups/backup-taking.js";
import {
  type BackupFrame,
  decodeBackupFrame,
  encodeBackupFrame,
  isBackupFrame,
} from "../../../../src/host/backups/backup-messages.js";
import { type Asked, TakingCluster } from "../../../doubles/backup/taking-world.js";

// A loaded machine takes its time for so many clusters.
t.setTimeout(240_000);

/** What is left in the directory is one whole backup, or nothing that says it is one. */
function isWholeOrNothing(cluster: TakingCluster, asked: Asked): boolean {
  const manifests = cluster.names().filter((name) => name.endsWith(".manifest"));
  if (asked.said !== "taken") return manifests.length === 0;
  cluster.verified(asked.manifest.backupId);
  return manifests.length === 1;
}

/** Changes or loses frames of backups on their way; null = lost. */
function tamper(
  cluster: TakingCluster,
  change: (frame: BackupFrame, from: number) => BackupFrame | null,
): void {
  cluster.network.filter = (from, bytes) => {
    const frame = isBackupFrame(bytes) ? decodeBackupFrame(bytes) : null;
    if (frame === null) return bytes;
    const changed = change(frame, from);
    return changed === null ? null : encodeBackupFrame(changed);
  };
}

function filled(size: number, replicationFactor: number): TakingCluster {
  const settings = { initialPartitions: 4, compactKeepEntries: 1000 };
  const cluster = new TakingCluster(size, replicationFactor, settings).ready();
  for (let at = 0; at < 8; at++) cluster.write(1 + (at % 4), `key-${at}`, "x".repeat(20_000));
  return cluster;
}

t.test("P-133 a partition that the keeper does not have is shipped by a node that has it", (t) => {
  const cluster = filled(5, 2);
  for (const keeper of [1, 3, 5]) {
    const asked = cluster.take(keeper, { kind: "full" });
    const chain = cluster.verified(asked.manifest.backupId);
    t.same([...chain.partitions.keys()], [0, 1, 2, 3, 4]);
    t.ok(cluster.hosts(1).length === 2, "which is not everywhere");
  }
  t.end();
});

const PHASES = ["images", "marks", "logs", "checking", "publishing"];

for (const kind of ["full", "coordinated"] as const) {
  t.test(`P-132 P-140 ${kind}: whoever dies at whatever step, it is whole or nothing`, (t) => {
    for (const phase of PHASES) {
      for (const victim of phase === "publishing" ? [0] : [0, 1]) {
        const cluster = filled(4, 3);
        const keeper = cluster.serverOf(0) ?? 1;
        const others = [1, 2, 3, 4].filter((id) => id !== keeper);
        const dead = victim === 0 ? keeper : (others[victim] ?? 0);
        const asked = cluster.ask(keeper, { kind });
        const reached = (): boolean => asked.phases.at(-1) === phase || asked.end !== null;
        cluster.stepUntil(reached);
        cluster.kill(dead);
        const where = `${phase}, node ${victim === 0 ? "keeper" : dead} dies`;
        if (victim === 0) {
          cluster.pass(1000);
          const names = cluster.names().filter((name) => name.endsWith(".manifest"));
          for (const name of names) cluster.verified(name.slice(0, 32));
        } else {
          cluster.passUntil(() => asked.end !== null, 120_000);
          t.ok(isWholeOrNothing(cluster, asked), `${where}: ${asked.said}`);
          if (kind === "full") t.equal(asked.said, "taken", `${where}: ${asked.message}`);
        }
        cluster.pass(31_000, 100);
        for (const [id, node] of cluster.nodes) {
          t.equal(node.facts().backupLog.holds, 0, `${where}: no hold is left on node ${id}`);
        }
      }
    }
    t.end();
  });
}

t.test("P-140 a backup that is cancelled at any step leaves nothing, and ends once", (t) => {
  for (const phase of ["beginning", ...PHASES.slice(0, 4)]) {
    const cluster = filled(3, 0);
    const asked = cluster.ask(1, { kind: "full" });
    cluster.stepUntil(() => phase === "beginning" || asked.phases.at(-1) === phase);
    asked.cancel();
    asked.cancel();
    cluster.passUntil(() => asked.end !== null);
    t.equal(asked.said, "Cancelled", phase);
    cluster.pass(100);
    t.same(cluster.names(), [], phase);
  }
  t.end();
});

t.test("P-140 whatever call of the disk fails, nothing is published", (t) => {
  const calls = filled(3, 0);
  calls.take(1, { kind: "full" });
  const count = calls.disk.calls.findIndex(({ call }) => call === "rename");
  t.ok(count > 20, "there are calls to fail");
  for (let at = 0; at < count; at += 9) {
    const cluster = filled(3, 0);
    let left = at;
    cluster.disk.fails = () => left-- === 0;
    const asked = cluster.take(1, { kind: "full" });
    if (asked.said === "taken") cluster.verified(asked.manifest.backupId);
    else t.ok(isWholeOrNothing(cluster, asked), `call ${at}: ${asked.said} ${asked.message}`);
  }
  t.end();
});

t.test("P-135 frames that are lost are asked for again", (t) => {
  const cluster = filled(4, 2);
  let count = 0;
  tamper(cluster, (frame) => (count++ % 5 === 3 ? null : frame));
  const asked = cluster.take(1, { kind: "full" }, 120_000);
  t.equal(asked.said, "taken", asked.message);
  t.ok(isWholeOrNothing(cluster, asked));
  t.end();
});

t.test("P-130 P-133 a replica whose digest differs from its leader's is no source", (t) => {
  const cluster = filled(4, 2);
  const keeper = [1, 2, 3, 4].find((id) => !cluster.hosts(1).includes(id)) ?? 0;
  tamper(cluster, (frame) => {
    if (frame.class !== "answer" || frame.answer.kind !== "log") return frame;
    return { ...frame, answer: { ...frame.answer, chain: "0".repeat(16) } };
  });
  const asked = cluster.take(keeper, { kind: "full" });
  t.equal(asked.said, "ExactCheckpointUnavailable");
  t.match(asked.message, /differs/);
  t.ok(isWholeOrNothing(cluster, asked));
  t.end();
});

t.test("P-134 a cut whose pauses are not proved does not count", (t) => {
  const cluster = filled(3, 0);
  const keeper = cluster.serverOf(0) ?? 0;
  for (let at = 0; at < 20 && leaders(cluster).size === 1; at++) cluster.pass(1000);
  tamper(cluster, (frame) => {
    return frame.class === "ask" && frame.ask.kind === "verify" ? null : frame;
  });
  t.ok(leaders(cluster).size > 1, "more than one node leads");
  const asked = cluster.take(keeper, { kind: "coordinated" }, 120_000);
  t.equal(asked.said, "ExactCheckpointUnavailable", "three rounds fail");
  t.equal(cluster.node(keeper).facts().backups.rounds.get("failed"), 3);
  for (const partition of [1, 2, 3, 4]) t.ok(cluster.write(partition, "after"), "all go on");
  cluster.network.filter = (_from, bytes) => bytes;
  t.equal(cluster.take(keeper, { kind: "coordinated" }).said, "taken");
  t.end();
});

function leaders(cluster: TakingCluster): Set<number | null> {
  return new Set([1, 2, 3, 4].map((partition) => cluster.serverOf(partition)));
}

t.test("P-134 a stamp that was passed is chosen anew", (t) => {
  const cluster = filled(3, 0);
  const keeper = cluster.serverOf(0) ?? 0;
  for (let at = 0; at < 20 && leaders(cluster).size === 1; at++) cluster.pass(1000);
  const other = [...leaders(cluster)].find((id) => id !== null && id !== keeper) ?? 0;
  t.ok(other > 0, "another node leads something");
  // The clock of a leader jumps right before it is told to close, and it stamps by that.
  let jumped = false;
  tamper(cluster, (frame) => {
    if (!jumped && frame.class === "ask" && frame.ask.kind === "close") {
      jumped = true;
      cluster.world(other).wallMs += 5000;
      cluster.groupAt(other, partitionLedBy(cluster, other)).nextStamp();
    }
    return frame;
  });
  const asked = cluster.take(keeper, { kind: "coordinated" }, 60_000);
  t.ok(jumped);
  t.equal(asked.said, "taken", asked.message);
  const { rounds } = cluster.node(keeper).facts().backups;
  t.equal(rounds.get("passed"), 1);
  t.equal(rounds.get("cut"), 1);
  t.ok(isWholeOrNothing(cluster, asked));
  t.end();
});

function partitionLedBy(cluster: TakingCluster, id: number): number {
  return [1, 2, 3, 4].find((partition) => cluster.serverOf(partition) === id) ?? 1;
}

t.test("P-134 a clock that is more than a day ahead gets no cut", (t) => {
  const cluster = filled(1, 0);
  const meta = cluster.groupAt(1, 0);
  cluster.write(1, "before");
  cluster.world(1).wallMs -= 3 * 24 * 3_600_000;
  t.ok(meta.isServing());
  const asked = cluster.take(1, { kind: "coordinated" });
  t.equal(asked.said, "ExactCheckpointUnavailable");
  t.match(asked.message, /day ahead/);
  t.end();
});

t.test("P-135 where the log does not go on from the parent, a Full says why", (t) => {
  const settings = { initialPartitions: 2, compactKeepEntries: 1, compactEveryEntries: 5 };
  const cluster = new TakingCluster(3, 0, { ...settings, flushAgeMs: 50 }).ready();
  cluster.write(1, "first");
  const full = cluster.take(1, { kind: "full" }).manifest;
  for (let at = 0; at < 60; at++) cluster.write(1, `key-${at}`);
  cluster.pass(5000);
  const request: BackupRequest = { kind: "incremental", parentId: full.backupId };
  const asked = cluster.take(2, request);
  t.equal(asked.manifest.type, "Full");
  t.equal(asked.end?.ok === true && asked.end.substitutionReason, "ParentLogCompacted");
  cluster.verified(asked.manifest.backupId);
  t.equal(cluster.node(2).facts().backups.substitutions.get("ParentLogCompacted"), 1);
  t.end();
});

t.test("P-136 what an incremental goes on from is read and verified", (t) => {
  const cluster = filled(3, 0);
  const full = cluster.take(1, { kind: "full" }).manifest;
  const request: BackupRequest = { kind: "incremental", parentId: full.backupId };
  cluster.disk.flip(`${full.backupId}/log/p00001.log`, 60);
  t.equal(cluster.take(2, request).said, "CorruptArtifact");
  t.end();
});
