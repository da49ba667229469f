/**
 * What svc-cli says and does when answers are lost, late or never come: an unknown outcome is neither success nor a
 * refusal, `--timeout` bounds the whole command, a lock that may be held is released. The node is a stand-in.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { describeFailure } from "../../../src/cli/invocation/failures.js";
import {
  InvalidInputError,
  SvcRangeError,
  AccessError,
} from "../../../src/client/values/errors.js";
import { protoReader } from "../../../src/proto/codec.js";
import * as kv from "../../../src/proto/generated/keyvalues.js";
import * as locks from "../../../src/proto/generated/locks.js";
import * as sequences from "../../../src/proto/generated/sequences.js";
import { sleep } from "../cluster/server-process.js";
import { Batch, ending, runCli, startCli } from "./programs.js";
import { LOST, StandIn, reply, type Reply } from "../../doubles/server/stand-in.js";

const batch = new Batch();
const node = await StandIn.bare();
const at = ["-c", node.endpoint];
const directory = mkdtempSync(join(tmpdir(), "svc-doubts-"));
t.setTimeout(300_000);
t.teardown(() => {
  batch.close();
  node.stop();
  rmSync(directory, { recursive: true, force: true });
});
t.beforeEach(() => {
  node.answers.clear();
  node.asked.length = 0;
});

/** The first call is lost, later ones are answered. */
function lostFirst(then: Reply) {
  return (_request: Buffer, number: number): Reply => (number === 1 ? LOST : then);
}

const NOT_THERE = reply(kv.GrpcTryDeleteKeyValueResponse, { Type: 103 });
const INVALID = 100;
const INVALID_SEQUENCE = 3;

t.test("an unknown outcome is no refusal: delete, set, unlock, create-sequence", async (t) => {
  const cases: readonly (readonly [string, Reply, readonly string[]])[] = [
    ["TryDeleteKeyValue", NOT_THERE, ["--delete", "k"]],
    [
      "TryDeleteKeyValue",
      reply(kv.GrpcTryDeleteKeyValueResponse, { Type: INVALID }),
      ["--delete", "k"],
    ],
    [
      "TrySetKeyValue",
      reply(kv.GrpcTrySetKeyValueResponse, { Type: INVALID }),
      ["--set", "k", "--value", "v"],
    ],
    ["Unlock", reply(locks.GrpcUnlockResponse, { Type: 102 }), ["--unlock", "r", "--owner", "o"]],
    ["Unlock", reply(locks.GrpcUnlockResponse, { Type: 103 }), ["--unlock", "r", "--owner", "o"]],
    [
      "Unlock",
      reply(locks.GrpcUnlockResponse, { Type: INVALID }),
      ["--unlock", "r", "--owner", "o"],
    ],
    [
      "TryLock",
      reply(locks.GrpcTryLockResponse, { Type: INVALID }),
      ["--lock", "r", "--expires", "5", "--owner", "o"],
    ],
    [
      "CreateSequence",
      reply(sequences.GrpcSequenceResponse, { Type: INVALID_SEQUENCE }),
      ["--create-sequence", "s"],
    ],
    [
      "DeleteSequence",
      reply(sequences.GrpcSequenceResponse, { Type: 1 }),
      ["--delete-sequence", "s"],
    ],
    [
      "TryLock",
      reply(locks.GrpcTryLockResponse, { Type: 1 }),
      ["--lock", "r", "--expires", "5", "--owner", "o"],
    ],
  ];
  for (const [method, then, words] of cases) {
    for (const format of ["console", "json"]) {
      node.asked.length = 0;
      node.answers.set(method, lostFirst(then));
      const ran = await batch.run([...at, "--format", format, ...words]);
      const label = `${words.join(" ")} ${format}: ${ran.stdout}${ran.stderr}`;
      t.equal(node.count(method), 2, label);
      t.equal(ran.exit, 4, label);
      t.equal(ran.stdout, "", label);
      t.match(ran.stderr, /outcome is unknown/, label);
    }
  }
  node.answers.set("TryDeleteKeyValue", NOT_THERE);
  t.match(await batch.run([...at, "--delete", "k"]), { exit: 1, stdout: "not found\n" });
});

t.test("failures: unknown is never exit 1, and is said", (t) => {
  const facts = { outcome: "unknown" } as const;
  for (const error of [
    new InvalidInputError("no", facts),
    new SvcRangeError("no", null, facts),
    new AccessError("forbidden", "no", facts),
  ]) {
    const { exit, message } = describeFailure(error, null);
    t.equal(exit, 4, error.name);
    t.match(message, /outcome is unknown/, error.name);
  }
  const done = describeFailure(new SvcRangeError("no", 5n, { outcome: "done" }), null);
  t.match(done, { exit: 4, message: /was done/ });
  t.equal(describeFailure(new InvalidInputError("no"), null).exit, 1);
  t.notMatch(describeFailure(new AccessError("forbidden", "no"), null).message, /unknown/);
  t.end();
});

t.test("--timeout bounds a whole scan, not each page", async (t) => {
  let page = 0;
  const item = { Key: "k", Value: Buffer.from("v"), State: 1 };
  node.answers.set("ScanAllByPrefix", async () => {
    await sleep(200);
    page += 1;
    const fields = { Type: 3, Items: [item], HasMore: page % 50 !== 0, NextCursor: String(page) };
    return reply(kv.GrpcScanAllByPrefixResponse, fields);
  });
  node.answers.set("GetByBucket", { status: 8 });
  node.answers.set("GetByRange", async () => {
    await sleep(200);
    page += 1;
    const fields = { Type: 3, Items: [item], HasMore: page % 50 !== 0 };
    return reply(kv.GrpcGetByRangeResponse, fields);
  });
  for (const words of [
    ["--scan-by-prefix", "k"],
    ["--get-by-bucket", "b"],
  ]) {
    page = 0;
    const ran = await batch.run([...at, "-t", "1", ...words]);
    t.equal(ran.exit, 3, `${words.join(" ")}: ${ran.stderr}`);
    t.ok(page >= 2 && page < 10, `${page} pages within a second`);
  }
});

t.test("a repeated reserve carries the key of its first try", async (t) => {
  const allocation = { Name: "s", Start: 1, End: 3, Count: 3, Revision: 1 };
  const done = reply(sequences.GrpcSequenceAllocationResponse, { Type: 0, Allocation: allocation });
  node.answers.set("ReserveSequenceRange", lostFirst(done));
  t.match(await batch.run([...at, "--reserve-sequence", "s", "--count", "3"]), { exit: 0 });
  const keys = node.asked.slice(-2).map(({ key }) => key);
  t.equal(node.count("ReserveSequenceRange"), 2);
  t.type(keys[0], "string", "keyed from the start");
  t.equal(keys[0], keys[1]);
});

t.test("what only reads is never said to have been done perhaps", async (t) => {
  for (const method of ["ScanAllByPrefix", "GetByBucket", "TrySetKeyValue", "GetMembership"]) {
    node.answers.set(method, "silence");
  }
  const hasty = (words: readonly string[]) => batch.run([...at, "-t", "0.5", ...words]);
  const reads = [["--scan-by-prefix", "k"], ["--get-by-bucket", "b"], ["--cluster-members"]];
  const [written, ...all] = await Promise.all([
    hasty(["--set", "k", "--value", "v"]),
    ...reads.map(hasty),
  ]);
  for (const [index, ran] of all.entries()) {
    const label = reads[index]?.join(" ") ?? "";
    t.match(ran, { exit: 3, stdout: "" }, label);
    t.notMatch(ran.stderr, /may have been done/, label);
  }
  t.equal(all.length, reads.length);
  t.match(written, { exit: 3, stderr: /the outcome is unknown: it may have been done/ });
});

t.test("an allocation that may have been made names its key, for a repeat by hand", async (t) => {
  for (const [method, codec, words] of [
    ["ReserveSequenceRange", sequences.GrpcReserveSequenceRangeRequest, "--reserve-sequence"],
    ["NextSequenceValue", sequences.GrpcNextSequenceRequest, "--next-sequence"],
  ] as const) {
    node.answers.set(method, "silence");
    const json = await batch.run([...at, "-t", "0.5", "--format", "json", words, "s"]);
    t.match(json, { exit: 3, stdout: "" });
    const { error } = JSON.parse(json.stderr) as { error: { idempotencyKey: string } };
    const sent = codec.decode(protoReader(node.asked.at(-1)?.bytes ?? Buffer.of()));
    t.equal(error.idempotencyKey, sent.IdempotencyKey, words);
    const console = await batch.run([...at, "-t", "0.5", words, "s", "--idempotency-key", "own"]);
    t.match(console.stderr, /outcome is unknown.*the idempotency key own gives the same values\n$/);
    node.answers.set(method, { status: 3 });
    t.notMatch((await batch.run([...at, words, "s"])).stderr, /idempotency key/);
  }
});

const GRANTED = reply(locks.GrpcTryLockResponse, { Type: 0, FencingToken: 7 });
const UNLOCKED = reply(locks.GrpcUnlockResponse, { Type: 3 });

function unlockOwners(): (string | null)[] {
  return node.asked.flatMap(({ method, bytes }) => {
    if (method !== "unlock") return [];
    const { Owner } = locks.GrpcUnlockRequest.decode(protoReader(bytes));
    return [Owner === null ? null : Buffer.from(Owner).toString()];
  });
}

function lockOwners(): string[] {
  return node.asked.filter(({ method }) => method === "lock").map(({ owner }) => owner);
}

t.test("shell: a lock that may be held is on the list and released at the end", async (t) => {
  node.answers.set("TryLock", "silence");
  node.answers.set("Unlock", UNLOCKED);
  const lines = "lock r 60000 --timeout 0.3\n";
  const ran = await runCli(at, {}, lines);
  t.equal(ran.exit, 3, ran.stderr);
  t.match(ran.stderr, /outcome is unknown/);
  t.match(ran.stdout, /Disposing persistent lock [0-9a-f]{32}/);
  t.same([...new Set(lockOwners())], unlockOwners(), "released under the owner that was sent");
});

t.test("shell: busy after a lost try leaves the lock on the list", async (t) => {
  const busy = reply(locks.GrpcTryLockResponse, { Type: 1 });
  node.answers.set("TryLock", lostFirst(busy));
  node.answers.set("Unlock", UNLOCKED);
  const ran = await runCli(at, {}, "lock r 60000\n");
  t.equal(ran.exit, 4, ran.stderr);
  t.match(ran.stdout, /Disposing persistent lock [0-9a-f]{32}/);
  t.same([...new Set(lockOwners())], unlockOwners());
  node.asked.length = 0;
  // The doubt of one try stays with those that follow within --wait.
  const words = ["--lock", "r", "--expires", "60000", "--owner", "o", "--wait", "300"];
  const waited = await batch.run([...at, ...words]);
  t.ok(node.count("TryLock") > 2, "several tries");
  t.match(waited, { exit: 4, stdout: "", stderr: /if it was granted, --unlock r --owner o/ });
});

t.test("shell: a doubtful lock keeps an older one, and unlock releases both", async (t) => {
  node.answers.set("TryLock", (_request, number) => (number === 1 ? GRANTED : "silence"));
  node.answers.set("Unlock", UNLOCKED);
  const ran = await runCli(at, {}, "lock r 60000\nlock r 60000 --timeout 0.3\nunlock r\n");
  t.match(ran.stdout, /f7 acquired/);
  t.equal(new Set(lockOwners()).size, 2);
  t.same(new Set(unlockOwners()), new Set(lockOwners()));
  t.notMatch(ran.stdout, /Disposing/, "nothing is left");
});

t.test("shell: an unknown extend never makes a lock look longer than it may be", async (t) => {
  node.answers.set("TryLock", GRANTED);
  node.answers.set("TryExtendLock", "silence");
  node.answers.set("Unlock", UNLOCKED);
  const ran = await runCli(at, {}, "lock r 60000\nextend-lock r 1 --timeout 0.3\n");
  t.equal(ran.exit, 3, ran.stderr);
  t.match(ran.stdout, /Disposing persistent lock/, "still on the list");
});

const EXTENDED = reply(locks.GrpcExtendLockResponse, { Type: 2, FencingToken: 7 });

t.test(
  "lock-run: what may be held after a failed acquire is released before the end",
  async (t) => {
    node.answers.set("TryLock", "silence");
    node.answers.set("Unlock", async () => {
      await sleep(100);
      return UNLOCKED;
    });
    const mark = join(directory, "never");
    const words = ["lock-run", "r", "--expires", "5000", "--", "touch", mark];
    t.match(await runCli([...at, "-t", "0.5", ...words]), { exit: 3 });
    t.equal(node.count("Unlock"), 1, "after a timeout");
    node.asked.length = 0;
    // The grant is under way when the signal comes: it is awaited, and given back.
    let goesOn = (): void => undefined;
    const wasSignalled = new Promise<void>((resolve) => (goesOn = resolve));
    node.answers.set("TryLock", async () => {
      await wasSignalled;
      await sleep(300);
      return GRANTED;
    });
    const signalled = startCli([...at, ...words]);
    const ran = ending(signalled);
    while (node.count("TryLock") < 1) await sleep(10);
    signalled.kill("SIGTERM");
    goesOn();
    t.match(await ran, { exit: 143 });
    t.equal(node.count("Unlock"), 1, "after a signal");
    t.notOk(existsSync(mark));
  },
);

t.test("lock-run: no command is started on a lock that is not held any more", async (t) => {
  const mark = join(directory, "late");
  // The grant comes after its lease: it must not count.
  node.answers.set("TryLock", async () => {
    await sleep(200);
    return GRANTED;
  });
  node.answers.set("TryExtendLock", async () => {
    await sleep(200);
    return EXTENDED;
  });
  node.answers.set("Unlock", UNLOCKED);
  const words = ["lock-run", "r", "--expires", "150", "--", "touch", mark];
  const ran = await runCli([...at, "-t", "3", ...words]);
  t.notOk(existsSync(mark), "never started");
  t.not(ran.exit, 0, ran.stderr);
  t.ok(node.count("Unlock") >= 1, "released");
});

t.test("lock-run: a signal between grant and start of the command is not lost", async (t) => {
  // The signal arrives with the answer of the confirming extend: at that moment nobody runs yet.
  for (let round = 0; round < 3; round++) {
    node.asked.length = 0;
    node.answers.set("TryLock", GRANTED);
    node.answers.set("Unlock", UNLOCKED);
    const program =
      'process.on("SIGTERM", () => process.exit(9)); setTimeout(() => process.exit(0), 5000);';
    const words = ["lock-run", "r", "--expires", "20000", "--owner", "o", "--"];
    const child = startCli([...at, ...words, process.execPath, "-e", program]);
    node.answers.set("TryExtendLock", () => {
      child.kill("SIGTERM");
      return EXTENDED;
    });
    const ran = await ending(child);
    t.ok([9, 143].includes(ran.exit), `${ran.exit}: ${ran.stderr}`);
    t.ok(node.count("Unlock") >= 1, "released");
  }
});

t.test("bench: what a failed start left is deleted; nothing made, nothing sent", async (t) => {
  const sequence = { Name: "s", Increment: 1 };
  node.answers.set(
    "CreateSequence",
    reply(sequences.GrpcSequenceResponse, { Type: 0, Sequence: sequence }),
  );
  node.answers.set("DeleteSequence", reply(sequences.GrpcSequenceResponse, { Type: 0 }));
  // The membership is not answered: the measurement never begins.
  t.match(await runCli([...at, "bench", "sequences"]), { exit: 4, stderr: /GetMembership/ });
  t.equal(node.count("DeleteSequence"), 1);
  node.asked.length = 0;
  node.answers.set(
    "CreateSequence",
    reply(sequences.GrpcSequenceResponse, { Type: INVALID_SEQUENCE }),
  );
  t.match(await runCli([...at, "bench", "sequences"]), { exit: 1 });
  t.equal(node.count("DeleteSequence"), 0);
  node.answers.set("CreateSequence", "silence");
  t.match(await runCli([...at, "-t", "0.5", "bench", "sequences"]), { exit: 3 });
  t.equal(node.count("DeleteSequence"), 1, "it may have been made");
});

t.test("--token: sent, and gone from the list of processes", async (t) => {
  const token = "tok3n-that-nobody-reads";
  node.answers.set("TryDeleteKeyValue", "silence");
  const child = startCli([...at, "--token", token, "--delete", "k"]);
  const ran = ending(child);
  while (node.count("TryDeleteKeyValue") === 0) await sleep(10);
  const shown = readFileSync(`/proc/${child.pid}/cmdline`, "utf8").replaceAll("\0", " ");
  child.kill("SIGKILL");
  await ran;
  t.match(shown, /^svc-cli -c \S+ --token \*\*\* --delete k/);
  t.notOk(shown.includes(token.slice(0, 6)), shown);
});

t.test("a piped shell ends by Ctrl+C, idle or not, and releases its locks", async (t) => {
  node.answers.set("TryLock", GRANTED);
  node.answers.set("Unlock", UNLOCKED);
  node.answers.set("TryDeleteKeyValue", "silence");
  for (const line of ["", "delete k\n"]) {
    node.asked.length = 0;
    const child = startCli(at);
    const ran = ending(child);
    child.stdin?.write(`lock r 60000\n${line}`);
    const method = line === "" ? "TryLock" : "TryDeleteKeyValue";
    while (node.count(method) === 0) await sleep(10);
    await sleep(200);
    child.kill("SIGINT");
    const { exit, stdout } = await ran;
    t.equal(exit, 130);
    t.match(stdout, /Disposing persistent lock/);
    t.equal(node.count("Unlock"), 1);
  }
});
