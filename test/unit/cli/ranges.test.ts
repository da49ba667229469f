/** Key ranges on the command line: every end of contract 6.3, the list, and progress while moves run. */
import t from "tap";
import { findCommand } from "../../../src/cli/commands/table.js";
import { whileMoving } from "../../../src/cli/run/range-progress.js";
import { keyText } from "../../../src/cli/run/range-text.js";
import type { RunContext } from "../../../src/cli/invocation/context.js";
import type { KeySpaceRanges, RangeMove } from "../../../src/client/mod.js";
import type { MessageCodec } from "../../../src/proto/codec.js";
import * as cluster from "../../../src/proto/generated/cluster.js";
import * as keyvalues from "../../../src/proto/generated/keyvalues.js";
import {
  MERGE_ENDS,
  REGISTER_ENDS,
  SPLIT_ENDS,
  UNREGISTER_ENDS,
  type RangeEnd,
} from "../../doubles/front/range-ends.js";
import { StandIn, reply, type Reply } from "../../doubles/server/stand-in.js";
import { Batch, misfits } from "../../process/cli/programs.js";

const batch = new Batch();
const first = await StandIn.bare();
const second = await StandIn.bare();
t.teardown(() => {
  batch.close();
  first.stop();
  second.stop();
});
const both = `${first.endpoint},${second.endpoint}`;
type Tap = Pick<typeof t, "equal" | "same">;

/** Runs in both formats, checks the document against its schema; nobody sees a progress. */
async function answer(t: Tap, exit: number, words: readonly string[], document: unknown) {
  const json = await batch.run(["--format", "json", "-c", both, ...words]);
  t.equal(json.exit, exit, `${words.join(" ")}: ${json.stderr}`);
  const command = words.map(findCommand).find((found) => found !== null);
  const printed: unknown = JSON.parse(json.stdout);
  t.same(misfits(command?.document ?? {}, printed), [], words.join(" "));
  t.same(printed, document, words.join(" "));
  const console = await batch.run(["-c", both, ...words]);
  t.equal(console.exit, exit, console.stderr);
  t.equal(json.stderr + console.stderr, "", "not a terminal: nothing beside the answer");
  return console.stdout.replace(/\n$/, "");
}

function set<T>(rpc: string, codec: MessageCodec<T>, on: StandIn[], message: object): void {
  const answer: Reply = reply(codec, message as never);
  for (const node of on) node.answers.set(rpc, answer);
}

t.test("6.3, 8.2, 8.3 every end of a split has its lines and its exit code", async (t) => {
  const words = ["--split-range", "users", "--split-key", "users/m"];
  for (const [status, end] of SPLIT_ENDS) {
    const success = end === "done";
    const isElsewhere = status === "NotLeader";
    const document = {
      success,
      status,
      determinate: end !== "open",
      newPartitionId: success ? 17 : 0,
      newGeneration: success ? 2 : 0,
      leaderHint: isElsewhere ? "http://b:1" : "",
      reason: success ? "" : "why",
    };
    const message = {
      ...{ Success: success, Status: status, Determinate: end !== "open" },
      ...{ NewPartitionId: document.newPartitionId, LeaderHint: document.leaderHint },
      ...{ NewGeneration: document.newGeneration, Reason: document.reason },
    };
    set("SplitRange", cluster.GrpcSplitRangeResponse, [first, second], message);
    const before = second.count("SplitRange");
    const lines = [
      success
        ? "Split: users at users/m — partition 17 at generation 2."
        : `Not split: status ${status} — why`,
      ...(end === "open" ? ["Outcome open: read --ranges again."] : []),
      ...(isElsewhere ? ["Try --node http://b:1."] : []),
    ];
    t.equal(await answer(t, success ? 0 : 1, words, document), lines.join("\n"), status);
    t.equal(second.count("SplitRange") - before, isElsewhere ? 2 : 0, "only NotLeader goes on");
  }
  t.equal(first.count("GetRanges") + second.count("GetRanges"), 0, "nobody sees a progress");
});

t.test("6.3, 8.2, 8.3 every end of a merge pass", async (t) => {
  for (const [status, end] of MERGE_ENDS) {
    for (const merges of [0, 3]) {
      const success = end === "done";
      const hint = status === "NotLeader" ? "http://b:1" : "";
      const reason = success ? "" : "why";
      const determinate = end !== "open";
      set("MergeRanges", cluster.GrpcMergeRangesResponse, [first, second], {
        ...{ Success: success, Status: status, Determinate: determinate, Merges: merges },
        ...{ LeaderHint: hint, Reason: reason },
      });
      const document = { success, status, determinate, merges, leaderHint: hint, reason };
      const folded =
        merges === 0
          ? "no adjacent ranges were small enough to fold."
          : `folded ${merges} adjacent pair(s).`;
      const lines = [
        success ? `Merge pass complete: ${folded}` : `No merge pass ran: status ${status} — why`,
        ...(determinate ? [] : ["Outcome open: read --ranges again."]),
        ...(hint === "" ? [] : ["Try --node http://b:1."]),
      ];
      const told = await answer(t, success ? 0 : 1, ["--merge-ranges"], document);
      t.equal(told, lines.join("\n"), `${status}, ${merges}`);
    }
  }
});

t.test("6.3, 8.2, 8.3 every end of register and unregister, from every node", async (t) => {
  const calls = [
    ["--register-key-range", "RegisterKeyRange", REGISTER_ENDS],
    ["--unregister-key-range", "RemoveKeyRange", UNREGISTER_ENDS],
  ] as const;
  for (const [option, rpc, ends] of calls) {
    const isRegister = rpc === "RegisterKeyRange";
    const codec = isRegister
      ? keyvalues.GrpcRegisterKeyRangeResponse
      : keyvalues.GrpcRemoveKeyRangeResponse;
    const given = ([status, end]: RangeEnd) => {
      const success = end === "done";
      const mode = isRegister && success ? "KeyRange" : "Hash";
      const count = isRegister && success ? 2 : 0;
      const reason = success ? "" : "why";
      const seeded = status === "Seeded";
      const document = {
        ...(isRegister ? { seeded } : {}),
        ...{ success, status, routingMode: mode, descriptorCount: count, reason },
      };
      const word = isRegister ? (seeded ? "Seeded" : "Registered") : "Removed";
      const done = `status ${status}, routed by ${mode}, ${count} range(s)`;
      const line = (endpoint: string) =>
        success
          ? `${word}: ${endpoint} — ${done}`
          : `Refused: ${endpoint} — status ${status} — why`;
      const message = {
        ...{ Success: success, Status: status, RoutingMode: mode },
        ...{ DescriptorCount: count, Reason: reason, ...(isRegister ? { Seeded: seeded } : {}) },
      };
      return { success, document, line, message };
    };
    const [good] = ends;
    if (good === undefined) throw new Error("there is a success");
    const fine = given(good);
    set(rpc, codec as MessageCodec<never>, [first], fine.message);
    for (const end of ends) {
      const other = given(end);
      set(rpc, codec as MessageCodec<never>, [second], other.message);
      const document = [
        { endpoint: first.endpoint, ...fine.document },
        { endpoint: second.endpoint, ...other.document },
      ];
      const told = await answer(t, other.success ? 0 : 1, [option, "users"], document);
      t.equal(told, `${fine.line(first.endpoint)}\n${other.line(second.endpoint)}`, end[0]);
    }
  }
});

const MOVE = {
  ...{ MoveId: 40, Kind: "split", StartKey: "users/m", Source: 1, Target: 17 },
  ...{ Phase: "copying", Attempt: 2, Reason: "none" },
};

t.test(
  "8.2, 8.4 the list: bounds on one line each, keys where known, moves, leaving",
  async (t) => {
    const describe = (StartKey: string | undefined, EndKey: string | undefined, Keys?: number) => {
      const ends = {
        ...(StartKey === undefined ? {} : { StartKey }),
        ...(EndKey === undefined ? {} : { EndKey }),
      };
      return { ...ends, PartitionId: 1, Generation: 3, ...(Keys === undefined ? {} : { Keys }) };
    };
    const spaces = [
      { KeySpace: "plain", RoutingMode: "Hash" },
      { KeySpace: "quiet", RoutingMode: "KeyRange", Descriptors: [describe(undefined, undefined)] },
      {
        KeySpace: "users",
        RoutingMode: "KeyRange",
        Descriptors: [describe(undefined, "a b\nc", 41), describe("a b\nc", undefined)],
        Moves: [MOVE],
        Leaving: true,
      },
    ];
    const message = { Initialized: true, LocalEndpoint: "a:1", KeySpaces: spaces };
    set("GetRanges", cluster.GrpcGetRangesResponse, [first], message);
    const range = (startKey: string | null, endKey: string | null, keys: number | null) => {
      return { startKey, endKey, partitionId: 1, generation: 3, keys };
    };
    const still = { moves: [], leaving: false };
    const document = {
      initialized: true,
      localEndpoint: "a:1",
      keySpaces: [
        { keySpace: "plain", routingMode: "Hash", descriptors: [], ...still },
        {
          keySpace: "quiet",
          routingMode: "KeyRange",
          descriptors: [range(null, null, null)],
          ...still,
        },
        {
          keySpace: "users",
          routingMode: "KeyRange",
          descriptors: [range(null, "a b\nc", 41), range("a b\nc", null, null)],
          moves: [
            {
              ...{ moveId: 40, kind: "split", startKey: "users/m", endKey: null, source: 1 },
              ...{ target: 17, phase: "copying", attempt: 2, reason: "none" },
            },
          ],
          leaving: true,
        },
      ],
    };
    const told = await answer(t, 0, ["--ranges"], document);
    t.equal(
      told,
      [
        "Node a:1 initialized  3 key space(s)",
        "",
        "plain  routed by Hash on this node",
        "Start key  End key  Partition  Generation",
        "---------  -------  ---------  ----------",
        "",
        "quiet  routed by KeyRange on this node",
        "Start key  End key  Partition  Generation",
        "---------  -------  ---------  ----------",
        "-inf       +inf     1          3",
        "",
        "users  routed by KeyRange on this node",
        "Start key  End key   Partition  Generation  Keys",
        "---------  --------  ---------  ----------  ----",
        '-inf       "a b\\nc"  1          3           41',
        '"a b\\nc"   +inf      1          3           -',
        "Moving  split: users/m to +inf, partition 1 to 17, copying, attempt 2",
        "Being unregistered: its ranges go back to the hash partition.",
      ].join("\n"),
    );
  },
);

t.test("a bound is one word, and none is taken for an open end", (t) => {
  for (const key of ["users/m", "日本/東京", 'a"b', "-", "inf"]) t.equal(keyText(key), key);
  t.equal(keyText(""), '""');
  t.equal(keyText("-inf"), '"-inf"');
  t.equal(keyText("+inf"), '"+inf"');
  t.equal(keyText('"a"'), '"\\"a\\""');
  t.equal(keyText("a b"), '"a b"');
  t.equal(keyText("a\u001b[2J"), '"a\\u001b[2J"');
  t.equal(keyText("a\u202eb"), '"a\\u202eb"');
  t.end();
});

function move(kind: string, phase: string, more: Partial<RangeMove> = {}): RangeMove {
  const interval = { startKey: null, endKey: null, source: 17, target: 2 };
  return { moveId: 1n, kind, ...interval, phase, attempt: 1, reason: "none", ...more };
}

function space(keySpace: string, moves: RangeMove[], leaving = false): KeySpaceRanges {
  const range = { startKey: null, endKey: null, partitionId: 1, generation: 1n, keys: null };
  return { keySpace, routingMode: "KeyRange", descriptors: [range, range], moves, leaving };
}

/** What is shown during `call` when the looks find `lists`, one after the other; null = no answer. */
async function shown(
  call: Parameters<typeof whileMoving>[1],
  keySpace: string,
  lists: readonly (readonly KeySpaceRanges[] | null)[],
): Promise<string[]> {
  const texts: string[] = [];
  let looks = 0;
  let end: (value: string) => void = () => undefined;
  const list = (asked: string) => {
    t.equal(asked, keySpace);
    const keySpaces = lists[looks++] ?? null;
    if (looks === lists.length) setImmediate(end, "ended");
    return keySpaces === null ? Promise.reject(new Error("none")) : Promise.resolve({ keySpaces });
  };
  const context = {
    show: (text: string) => void texts.push(text),
    client: () => Promise.resolve({ ranges: { list } }),
  } as unknown as RunContext;
  const work = () => new Promise<string>((resolve) => (end = resolve));
  t.equal(await whileMoving(context, call, keySpace, work), "ended");
  return texts;
}

t.test("what is said while a call runs: its own moves, with phase and attempt", async (t) => {
  const split = space("users", [move("split", "copying", { target: 18, attempt: 3 })]);
  const aborted = space("a\nb", [move("merge", "aborting", { reason: "no-target" })]);
  const leaving = (moves: RangeMove[]) => [space("users", moves, true)];
  const [splits, merges, unregisters] = await Promise.all([
    shown("split", "users", [[split], null, [space("users", [])]]),
    shown("merge", "", [[split], [aborted, space("c", [move("merge", "cut")])]]),
    shown("unregister", "users", [leaving([move("home", "copying")]), leaving([])]),
  ]);
  t.same(splits, ["split users: to partition 18, copying, attempt 3"], "no news, no words");
  const merge = 'merge "a\\nb": partition 17 to 2, aborting (no-target), attempt 1 (and 1 more)';
  t.same(merges, [merge], "not the move of somebody else");
  t.same(unregisters, [
    "unregister users: partition 17 to 2, copying, attempt 1, 2 ranges left",
    "unregister users: 2 ranges left",
  ]);
});

t.test("nothing is asked where nobody sees it", async (t) => {
  const context = { show: null, client: () => t.fail("asked") } as unknown as RunContext;
  t.equal(await whileMoving(context, "split", "users", () => Promise.resolve("x")), "x");
  const fail = () => Promise.reject(new Error("refused"));
  await t.rejects(whileMoving(context, "merge", "", fail));
});
