/**
 * Fuzzing of what nodes say to each other about backups: the frames by themselves, and frames that are damaged, repeated
 * and made up while backups are taken.
 *
 * Whatever comes, nothing throws, what is read is written again as it was, no node holds a log for ever, and a backup is
 * whole or there is none. Seeded by SVC_FUZZ_SEED; SVC_FUZZ_INPUTS is the number of rounds.
 */
import t from "tap";
import { Prng } from "../../src/base/prng.js";
import { HOLD_LAPSES_MS, PARTITIONS_MAX } from "../../src/base/limits.js";
import {
  type BackupFrame,
  decodeBackupFrame,
  encodeBackupFrame,
  isBackupFrame,
} from "../../src/host/backups/backup-messages.js";
import { BACKUP_FRAMES } from "../compat/formats/backup-frames.js";
import { TakingCluster } from "../doubles/backup/taking-world.js";
import { Hostile, ROUNDS, SEED } from "./peer-port.js";

t.setTimeout(400_000);
t.comment(`seed ${SEED}, ${ROUNDS} rounds`);

const SAMPLES = BACKUP_FRAMES.map((frame) => encodeBackupFrame(frame));

t.test("P-128 a frame is read as it was written, or not at all", (t) => {
  const hostile = new Hostile(71);
  let read = 0;
  for (let round = 0; round < ROUNDS * 100; round++) {
    const bytes = hostile.prng.chance(1, 8)
      ? Uint8Array.from([SAMPLES[0]?.[0] ?? 0, 1, ...hostile.bytes(hostile.prng.below(60))])
      : hostile.damaged(hostile.one(SAMPLES));
    const frame = decodeBackupFrame(bytes);
    if (frame === null) continue;
    read++;
    if (Buffer.compare(encodeBackupFrame(frame), bytes) !== 0) {
      t.fail(`read as another one: ${Buffer.from(bytes).toString("hex")}`);
      break;
    }
  }
  t.ok(read > ROUNDS, `${read} of them said something`);
  t.end();
});

/** A number as somebody may put it there: near what is right, or anywhere. */
function odd(prng: Prng, value: number): number {
  const choices = [value, value + 1, Math.max(0, value - 1), 0, 1, 2 ** 31, 2 ** 53 - 1];
  return choices[prng.below(choices.length)] as number;
}

/** The same frame with other numbers and ids in it. */
function altered(prng: Prng, frame: BackupFrame): BackupFrame {
  const walk = (value: unknown, name: string): unknown => {
    if (typeof value === "number" && name !== "version") {
      if (!prng.chance(1, 4)) return value;
      return name === "partition" ? prng.below(PARTITIONS_MAX + 2) : odd(prng, value);
    }
    if (typeof value === "boolean") return prng.chance(1, 8) ? !value : value;
    if (Array.isArray(value)) return value.map((each) => walk(each, name));
    if (typeof value !== "object" || value === null || value instanceof Uint8Array) return value;
    const members = Object.entries(value).map(([key, member]) => [key, walk(member, key)]);
    return Object.fromEntries(members) as unknown;
  };
  return walk(frame, "") as BackupFrame;
}

/** Bytes of an altered frame; null where no such frame can be written. */
function alteredBytes(prng: Prng, bytes: Uint8Array): Uint8Array | null {
  const frame = decodeBackupFrame(bytes);
  if (frame === null) return null;
  try {
    const other = encodeBackupFrame(altered(prng, frame));
    return decodeBackupFrame(other) === null ? null : other;
  } catch {
    return null;
  }
}

t.test("P-133 P-135 whatever the others say, a backup is whole or there is none", (t) => {
  const ends = new Map<string, number>();
  for (let round = 0; round < Math.max(8, ROUNDS / 8); round++) {
    const prng = new Prng(SEED * 131 + round);
    const hostile = new Hostile(1000 + round);
    const settings = { initialPartitions: 3, compactKeepEntries: 1000 };
    const cluster = new TakingCluster(3, 2, settings).ready();
    for (let at = 0; at < 6; at++) cluster.write(1 + (at % 3), `key-${at}`, "x".repeat(9000));
    const first = cluster.take(cluster.serverOf(0) ?? 1, { kind: "full" }).manifest;
    const rarely = 2 + prng.below(40);
    cluster.network.filter = (_from, bytes) => {
      if (!isBackupFrame(bytes) || !prng.chance(1, rarely)) return bytes;
      switch (prng.below(4)) {
        case 0:
          return hostile.damaged(bytes);
        case 1:
          return hostile.one(SAMPLES);
        case 2:
          return null;
        default:
          return alteredBytes(prng, bytes) ?? bytes;
      }
    };
    const kind = hostile.one(["full", "coordinated", "incremental"] as const);
    const request = kind === "incremental" ? { kind, parentId: first.backupId } : { kind };
    const keeper = kind === "coordinated" ? (cluster.serverOf(0) ?? 1) : 1 + prng.below(3);
    const asked = cluster.ask(keeper, request);
    cluster.passUntil(() => asked.end !== null, 400_000);
    cluster.network.filter = (_from, bytes) => bytes;
    ends.set(asked.said, (ends.get(asked.said) ?? 0) + 1);
    for (const name of cluster.names().filter((each) => each.endsWith(".manifest"))) {
      cluster.verified(name.slice(0, 32));
    }
    cluster.pass(2 * HOLD_LAPSES_MS, 100);
    for (const [id, node] of cluster.nodes) {
      t.equal(node.facts().backupLog.holds, 0, `round ${round}: node ${id} holds nothing`);
    }
    t.equal(cluster.take(keeper, { kind: "full" }, 120_000).said, "taken", `round ${round}`);
  }
  t.comment(JSON.stringify([...ends]));
  t.ok((ends.get("taken") ?? 0) > 0, "some were taken all the same");
  t.end();
});
