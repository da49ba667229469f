/**
 * The runbooks of scripts/deploy/README.md, carried out: each test bears the name of its heading and runs the commands that
 * stand below it, on real nodes. A part of them each day; `npm run drill` runs all and says how long each took.
 */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { PartOfDay } from "../../doubles/part-of-day.js";
import { PeerAuthority } from "../../doubles/net/certificates.js";
import { hasSmallDisk } from "../../process/cluster/small-disk.js";
import { endAll } from "../../process/cluster/server-process.js";
import { boxesOf } from "./documented.js";
import { putPeerFiles, peerFlags } from "./peer-files.js";
import { RUNBOOKS, type Shown, Stage } from "./stage.js";

t.setTimeout(1_500_000);
t.teardown(endAll);

const times: string[] = [];
const FILLER_BYTES = 400 * 1024 * 1024;
/** Less than what writes end at. */
const FULL_BYTES = 256 * 1024 * 1024;

/** A runbook by its heading. */
async function runbook(
  t: Test,
  heading: string,
  story: (t: Test, boxes: readonly string[]) => Promise<void>,
): Promise<void> {
  await t.test(heading, async (t) => {
    const beganMs = performance.now();
    await story(t, boxesOf(RUNBOOKS, heading));
    const seconds = ((performance.now() - beganMs) / 1000).toFixed(1);
    times.push(`${seconds.padStart(7)} s  ${heading}`);
  });
}

/** Fails with what it showed unless it ended with 0. */
function isDone(t: Test, { status, text }: Shown, what: string): void {
  t.equal(status, 0, what);
  if (status !== 0) t.comment(text);
}

function fill(path: string): void {
  try {
    writeFileSync(path, Buffer.alloc(FILLER_BYTES));
  } catch {
    // The disk filled up before it was done: that is what it is for.
  }
}

const cli = (words: string): readonly string[] => [`svc-cli ${words}`];

/** Until the verdict on all three is that nothing is wrong. */
async function healthy(stage: Stage, by = 1): Promise<void> {
  await stage.until("the cluster is healthy", async () => {
    const { status, text } = await stage.run(cli("--cluster-status"), by);
    return status === 0 && text.startsWith("healthy");
  });
}

async function founded(t: Test, flags?: (id: number) => readonly string[]): Promise<Stage> {
  const stage = await Stage.make(t, flags);
  for (const id of [1, 2, 3]) stage.start(id);
  await stage.ready(1, 2, 3);
  isDone(t, await stage.run(cli("--set known --value before"), 1), "something is stored");
  return stage;
}

async function keeps(t: Test, stage: Stage, by: number, value = "before"): Promise<void> {
  const { status, text } = await stage.run(cli("--get known --raw"), by);
  t.ok(status === 0 && text.includes(value), `what was stored is there: ${text.trim()}`);
}

async function nodesAndQuorum(t: Test): Promise<void> {
  const stage = await Stage.make(t);
  await runbook(t, "A node is not ready", async (t, boxes) => {
    for (const id of [1, 2]) stage.start(id);
    const waits = new RegExp(`waiting for founders: 3 ${stage.peer(3)}[^]*not-initialized`);
    await stage.until("it says whom it waits for", async () =>
      waits.test((await stage.run(boxes, 1)).text),
    );
    stage.start(3);
    await stage.ready(1, 2, 3);
    isDone(t, await stage.run(boxes, 1), "and then nothing is wrong");
    await healthy(stage);
    isDone(t, await stage.run(cli("--set known --value before"), 1), "something is stored");
  });
  await runbook(t, "One node is dead", async (t, boxes) => {
    await stage.kill(3);
    await stage.until("the status names it", async () => {
      const { status, text } = await stage.run(boxes, 1);
      return status === 1 && /node 3 .*cannot be reached/.test(text);
    });
    isDone(t, await stage.run(cli("--set other --value v"), 1), "the others serve on");
    stage.start(3);
    await stage.ready(3);
    await healthy(stage);
    await keeps(t, stage, 3);
  });
  await runbook(t, "A majority is gone for a while", async (t, boxes) => {
    await stage.kill(2, 3);
    await stage.until("the one that is left says why", async () =>
      /partitions-without-leader/.test((await stage.run(boxes, 1)).text),
    );
    const tried = await stage.run(cli("--timeout 2 --set other --value late"), 1);
    t.equal(tried.status, 3, "nothing is decided");
    for (const id of [2, 3]) stage.start(id);
    await stage.ready(1, 2, 3);
    await healthy(stage);
    await keeps(t, stage, 2);
  });
}

async function disks(t: Test): Promise<void> {
  const stage = await founded(t);
  await runbook(t, "One disk is lost", async (t, boxes) => {
    await stage.kill(3);
    stage.loseDisk(3);
    stage.start(3);
    const look = boxesOf(RUNBOOKS, "A node is not ready");
    await stage.until("it waits and names the command", async () =>
      /--cluster-leave --member 3/.test((await stage.run(look, 3)).text),
    );
    t.notOk(await stage.isReady(3));
    await stage.until(
      "the member is removed",
      async () => (await stage.run(boxes, 3)).status === 0,
    );
    await stage.ready(1, 2, 3);
    await healthy(stage);
    await keeps(t, stage, 3);
  });
  await runbook(t, "A majority of the disks is lost", async (t, boxes) => {
    // What is applied on the others is durable on the first one after a stop.
    await stage.node(1).stop();
    await stage.kill(2, 3);
    stage.loseDisk(2, 3);
    isDone(t, await stage.run(boxes, 1), "a cluster of one is made of the directory");
    stage.start(1);
    await stage.ready(1);
    await keeps(t, stage, 1);
    for (const id of [2, 3]) {
      stage.start(id, { "--initial-cluster": null, "--join": stage.peer(1) });
      await stage.ready(id);
    }
    await healthy(stage);
  });
}

async function fullDisk(t: Test): Promise<void> {
  const stage = await Stage.make(t);
  await runbook(t, "A disk is full", async (t, boxes) => {
    const small = stage.path("small");
    if (!hasSmallDisk(t, small, "size=420m")) return;
    stage.start(1, { "--initial-cluster": null, "--storage-path": join(small, "data") });
    await stage.ready(1);
    isDone(t, await stage.run(cli("--set known --value before"), 1), "something is stored");
    const set = cli("--timeout 2 --set other --value v");
    fill(join(small, "filler"));
    await stage.until("writes are refused", async () => (await stage.run(set, 1)).status === 3);
    const { text } = await stage.run(boxes, 1);
    const free = /^svc_storage_free_bytes\{volume="state"\} (\S+)$/m.exec(text)?.[1];
    t.ok(free !== undefined && Number(free) < FULL_BYTES, `it says how little is free: ${text}`);
    await keeps(t, stage, 1);
    rmSync(join(small, "filler"));
    await stage.until("writes go on by themselves", async () => {
      return (await stage.run(set, 1)).status === 0;
    });
  });
}

/** A coordinated backup: repeated, as the runbook says, while leaders are on their way. */
async function taken(t: Test, stage: Stage, boxes: readonly string[]): Promise<Shown> {
  let shown: Shown = { status: 1, text: "" };
  await stage.until("a coordinated backup is taken", async () => {
    shown = await stage.run(boxes, 1);
    if (shown.status !== 0) t.comment(shown.text);
    return shown.status === 0;
  });
  return shown;
}

async function backedUp(t: Test): Promise<void> {
  const stage = await founded(t);
  let backup = "";
  await runbook(t, "Backups", async (t, boxes) => {
    const shown = await taken(t, stage, boxes);
    backup = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/.exec(shown.text)?.[0] ?? "";
    t.ok(backup !== "" && shown.text.split(backup).length >= 3, "and listed");
  });
  await runbook(t, "All disks are lost", async (t, boxes) => {
    await stage.kill(1, 2, 3);
    stage.loseDisk(1, 2, 3);
    const shown = await stage.run(boxes, 1, { BACKUP: backup });
    isDone(t, shown, "found, verified and restored");
    t.ok(shown.text.includes(backup), "listed by the node that reads the catalogue");
    stage.start(1, { "--storage-path": stage.path("restores", "new") });
    await stage.ready(1);
    await keeps(t, stage, 1);
    for (const id of [2, 3]) {
      stage.start(id, { "--initial-cluster": null, "--join": stage.peer(1) });
      await stage.ready(id);
    }
    await healthy(stage);
    await taken(t, stage, boxesOf(RUNBOOKS, "Backups"));
  });
  await runbook(t, "Upgrade and way back", async (t, [ready = "", finalize = ""]) => {
    for (const id of [3, 2, 1]) {
      t.same(await stage.node(id).stop(), { code: 0, signal: null });
      const isNew = id === 1 ? { "--storage-path": stage.path("restores", "new") } : {};
      stage.start(id, isNew);
      isDone(t, await stage.run([ready], id), `node ${id} is ready again`);
    }
    await healthy(stage);
    isDone(t, await stage.run([finalize], 1), "the level is that of the program");
    await keeps(t, stage, 2);
  });
}

async function reached(t: Test): Promise<void> {
  const authority = await PeerAuthority.make("peers");
  const stage = await Stage.make(t, (id) => peerFlags(stage.path(`peer-${id}`)));
  const issue = async (endsInMs?: number): Promise<void> => {
    for (const id of [1, 2, 3]) {
      putPeerFiles(stage.path(`peer-${id}`), await authority.issueUntil(`node ${id}`, endsInMs));
    }
  };
  await issue();
  for (const id of [1, 2, 3]) stage.start(id);
  await stage.ready(1, 2, 3);
  isDone(t, await stage.run(cli("--set known --value before"), 1), "something is stored");
  /** At an address that its list of founders does not know. */
  const start = (id: number): unknown => {
    const port = String(stage.port(`new peer ${id}`));
    return stage.start(id, { "--initial-cluster": null, "--peer-port": port });
  };
  await runbook(t, "An address changed", async (t, boxes) => {
    const moved = `127.0.0.1:${stage.port("new peer 3")}`;
    await stage.node(3).stop();
    start(3);
    await stage.ready(3);
    await stage.until("the others list its new address", async () =>
      (await stage.run(boxes, 1)).text.includes(moved),
    );
    await healthy(stage);
    await keeps(t, stage, 3);
    await stage.node(1).stop();
    start(1);
    await stage.ready(1, 2, 3);
    await healthy(stage, 2);
  });
  await runbook(t, "A certificate ends, or ended", async (t, boxes) => {
    await Promise.all([1, 2, 3].map((id) => stage.node(id).stop()));
    await issue(-1000);
    start(1);
    stage.start(2);
    start(3);
    const look = boxesOf(RUNBOOKS, "A node is not ready");
    await stage.until("they cannot link, and say that they have no majority", async () =>
      /partitions-without-leader|not-initialized/.test((await stage.run(look, 2)).text),
    );
    const { text } = await stage.run(boxes, 2);
    const [, ended = ""] = /\{use="peer"\} (\d+)/.exec(text) ?? [];
    t.ok(ended !== "" && Number(ended) < Date.now() / 1000, `it ended: ${text.trim()}`);
    await issue();
    await stage.ready(1, 2, 3);
    await healthy(stage);
    await keeps(t, stage, 2);
  });
}

/** A module beside this one, as `--import` takes it. */
const beside = (name: string): string => new URL(name, import.meta.url).href;

async function wrongMachines(t: Test): Promise<void> {
  const stage = await founded(t);
  const again = async (before: readonly string[]): Promise<void> => {
    t.same(await stage.node(3).stop(), { code: 0, signal: null });
    stage.start(3, {}, before);
    await stage.ready(3);
  };
  const says = async (what: string, boxes: readonly string[], row: RegExp): Promise<void> => {
    await stage.until(what, async () => row.test((await stage.run(boxes, 1)).text));
    t.pass(what);
  };
  await runbook(t, "A clock is wrong", async (t, boxes) => {
    await again([beside("wrong-clock.js")]);
    isDone(t, await stage.run(cli("--set other --value v"), 3), "it serves on");
    await says("the check names the clock", boxes, /^FAILED +clock +3 .*3[56]\d{5} ms/m);
    await again([]);
    await says("and no more when it is right", boxes, /^ok +clock +3 /m);
    await keeps(t, stage, 3);
  });
  await runbook(t, "A slow disk", async (t, boxes) => {
    await again([beside("slow-disk.js")]);
    isDone(t, await stage.run(cli("--set other --value v"), 1), "a majority is as quick as ever");
    await says("the check names the disk", boxes, /^(?:FAILED|WARNING) +log-sync +3 /m);
    await stage.kill(3);
    isDone(t, await stage.run(cli("--set other --value w"), 1), "it is taken down for repair");
    stage.start(3);
    await stage.ready(3);
    await healthy(stage);
    await keeps(t, stage, 3);
  });
  await runbook(t, "Reading what a node says", async (t, [take = "", look = ""]) => {
    await stage.kill(3);
    const { status } = await stage.run([take], 1);
    t.equal(status, 1, "a node is missing");
    const shown = await stage.run([look], 1);
    isDone(t, shown, "it is unpacked");
    t.match(shown.text, /node-1\/log\.jsonl[^]*node-2\/metrics-2\.txt/, "all of two nodes");
    t.match(shown.text, /"ok": ?false/, "and why the third one is missing");
    t.ok(shown.text.includes(stage.endpoint(3)), "by its address");
  });
}

async function elsewhere(t: Test): Promise<void> {
  const stage = await founded(t);
  await runbook(t, "Move to other machines", async (t, [leave = "", copy = ""]) => {
    const newData = stage.path("other-machine", "3");
    mkdirSync(stage.path("other-machine"));
    t.same(await stage.node(3).stop(), { code: 0, signal: null });
    isDone(t, await stage.run([copy], 3, { NEW_DATA: newData }), "its data is copied");
    stage.loseDisk(3);
    const port = String(stage.port("new peer 3"));
    const moved = { "--storage-path": newData, "--peer-port": port, "--initial-cluster": null };
    stage.start(3, moved);
    await stage.ready(3);
    await healthy(stage);
    stage.start(4, { "--initial-cluster": null, "--join": `${stage.peer(1)},${stage.peer(2)}` });
    await stage.ready(4);
    await stage.until("it votes", async () => {
      const { text } = await stage.run(cli("--cluster-members"), 2);
      return new RegExp(`${stage.peer(4)} +4 +Voter`).test(text);
    });
    const left = await stage.run([leave], 2, { OLD: stage.endpoint(1) });
    isDone(t, left, "the old one leaves");
    t.match(left.text, /The process may now be stopped/);
    t.same(await stage.retire(1), { code: 0, signal: null });
    stage.loseDisk(1);
    await healthy(stage, 2);
    const { text } = await stage.run(cli("--cluster-members"), 2);
    t.notOk(text.includes(stage.peer(1)), "who left is no member");
    isDone(t, await stage.run(cli("--set known --value moved"), 4), "it serves on");
    await keeps(t, stage, 3, "moved");
  });
  await runbook(t, "Restore into a new namespace", async (t, boxes) => {
    const { text } = await taken(t, stage, boxesOf(RUNBOOKS, "Backups"));
    const backup = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/.exec(text)?.[0] ?? "";
    const other = await Stage.make(t);
    const from = { BACKUP: backup, BACKUPS: stage.path("backups") };
    isDone(t, await other.run(boxes, 1, from), "restored beside a cluster that serves");
    // All at once and with the list of founders, as a StatefulSet starts its pods.
    const existing = { "--initial-cluster-state": "existing" };
    for (const id of [3, 2]) other.start(id, existing);
    other.start(1, { ...existing, "--storage-path": other.path("restores", "data") });
    await other.ready(1, 2, 3);
    await healthy(other);
    await keeps(t, other, 3, "moved");
    isDone(t, await other.run(cli("--set known --value parted"), 2), "it goes its own way");
    await keeps(t, stage, 3, "moved");
    await healthy(stage, 2);
    await taken(t, other, boxesOf(RUNBOOKS, "Backups"));
  });
}

/** What a caller names its request. */
const REQUEST_ID = "look-for-this-one";

async function refused(t: Test): Promise<void> {
  const rate = (stage: Stage): string => stage.path("rate");
  const stage = await Stage.make(t, () => [
    `--caller-rate-limit=@${rate(stage)}`,
    "--slow-request-threshold=300ms",
    "--http-port=0",
  ]);
  const limit = (perSecond: number): void => {
    writeFileSync(rate(stage), String(perSecond));
    for (const id of stage.started) stage.node(id).signal("SIGHUP");
  };
  limit(0);
  for (const id of [1, 2, 3]) stage.start(id);
  await stage.ready(1, 2, 3);
  isDone(t, await stage.run(cli("--set known --value before"), 1), "something is stored");
  const { http } = await stage.node(1).addresses();
  const set = async (key: string, id = key): Promise<number> => {
    const answer = await fetch(`http://${http}/v1/kv/try-set`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-request-id": id },
      body: JSON.stringify({ key, value: "AAAA" }),
    });
    await answer.text();
    return answer.status;
  };
  await runbook(t, "Requests are slow or refused", async (t, [look = "", find = ""]) => {
    limit(1);
    await stage.until("callers are turned away", async () => {
      const all = await Promise.all(Array.from({ length: 20 }, (_, at) => set(`key ${at}`)));
      return all.filter((status) => status === 503).length > 10;
    });
    const { text } = await stage.run([look], 1);
    t.match(text, /^svc_requests_total\{.*outcome="Refused"\} [1-9]/m, "how many");
    t.match(text, /^svc_rate_limited_total [1-9]/m, "and that it is for their rate");
    limit(0);
    await stage.until("with another limit they are served", async () => {
      const all = await Promise.all(Array.from({ length: 20 }, (_, at) => set(`key ${at}`)));
      return all.every((status) => status === 200);
    });
    for (const id of [2, 3]) {
      t.same(await stage.node(id).stop(), { code: 0, signal: null });
      stage.start(id, {}, [beside("slow-disk.js")]);
      await stage.ready(id);
    }
    await stage.until("a write waits for slow disks", async () => {
      await set("other", REQUEST_ID);
      return stage.node(1).log.includes(REQUEST_ID);
    });
    writeFileSync(stage.path("log"), stage.node(1).log);
    const found = await stage.run([find], 1, { LOG: stage.path("log") });
    isDone(t, found, "the log has it");
    const line = found.text.split("\n").find((one) => one.includes(REQUEST_ID)) ?? "";
    t.match(line, /durationMs=[1-9]\d\d/, `under its id: ${line}`);
    const disks = boxesOf(RUNBOOKS, "A slow disk");
    await stage.until("the runbook of slow disks names them", async () => {
      return /^(?:FAILED|WARNING) +log-sync +[23] /m.test((await stage.run(disks, 1)).text);
    });
  });
}

const STORIES = [
  ...[nodesAndQuorum, disks, backedUp, reached, fullDisk, wrongMachines, elsewhere, refused],
];
const PART = new PartOfDay("SVC_RUNBOOKS", STORIES.length);

t.test(`runbooks, ${PART.text}`, async (t) => {
  for (const story of PART.of(STORIES)) await story(t);
  t.comment(`how long each took:\n${times.join("\n")}`);
  t.ok(times.length > 0, `${times.length} runbooks`);
});
