/**
 * The key-range paths (contract 3.6 and 6.3).
 *
 * Invariants: 1. Success is 200, `InvalidInput` 400, every other refusal 409. 2. The endpoint's own
 * `status` wins the clash with the status of the problem document.
 */
import type { RegisterRangeAnswer } from "../../operations/api/requests.js";
import { adminRoute } from "./admin-route.js";
import { RANGE_SHAPE, rangeText } from "./cluster-answers.js";
import { KEY_SPACE_QUERY } from "./cluster-routes.js";
import type { Exchange } from "../http/exchange.js";
import { listText, quoted } from "../json/json-text.js";
import { tableOf, text } from "../json/members.js";
import type { Route } from "../http/route.js";
import type { Shape } from "../http/shapes.js";

const keySpace = text("keySpace", "the key space, 1 to 1024 bytes");
const spaceTable = tableOf(keySpace);
const splitTable = tableOf(keySpace, text("splitKey", "first key of the upper range"));

const RANGES: Shape = {
  object: {
    initialized: "bool",
    localEndpoint: "text",
    keySpaces: {
      list: {
        object: { keySpace: "text", routingMode: "text", descriptors: { list: RANGE_SHAPE } },
      },
    },
  },
};
const REGISTER: Shape = {
  object: {
    success: "bool",
    status: "text",
    seeded: "bool",
    routingMode: "text",
    descriptorCount: "int32",
    reason: "text",
  },
};
const UNREGISTER: Shape = {
  object: {
    success: "bool",
    status: "text",
    routingMode: "text",
    descriptorCount: "int32",
    reason: "text",
  },
};
const SPLIT: Shape = {
  object: {
    success: "bool",
    status: "text",
    determinate: "bool",
    newPartitionId: "int32",
    newGeneration: "int64",
    leaderHint: "text",
    reason: "text",
  },
};
const MERGE: Shape = {
  object: {
    success: "bool",
    status: "text",
    determinate: "bool",
    merges: "int32",
    leaderHint: "text",
    reason: "text",
  },
};

interface Verdict {
  readonly success: boolean;
  readonly status: string;
  readonly reason: string;
}

/** `rest`: the members after `success` and `status`, before `reason`. */
function answerVerdict(exchange: Exchange, verdict: Verdict, rest: string): void {
  const own =
    `{"success":${verdict.success},"status":${quoted(verdict.status)},${rest},` +
    `"reason":${quoted(verdict.reason)}}`;
  if (verdict.success) exchange.json(200, own);
  else if (verdict.status === "InvalidInput") {
    exchange.problem(400, "invalid-argument", verdict.reason, null, own, "status");
  } else exchange.problem(409, "refused", verdict.reason, null, own, "status");
}

function modeText(answer: RegisterRangeAnswer): string {
  return `"routingMode":"${answer.routingMode}","descriptorCount":${answer.descriptorCount}`;
}

const shared = { tag: "ranges", access: "admin", statuses: [409] } as const;

const LIST_ROUTE = adminRoute({
  method: "GET",
  path: "/v1/ranges",
  access: "reader",
  tag: "ranges",
  summary: "List the key ranges",
  query: [KEY_SPACE_QUERY],
  answer: RANGES,
  statuses: [],
  run: (exchange, port, _, query) => {
    const answer = port.ranges(query.get("keySpace") ?? "");
    const spaces = listText(
      answer.keySpaces,
      (space) =>
        `{"keySpace":${quoted(space.keySpace)},"routingMode":"${space.routingMode}",` +
        `"descriptors":${listText(space.ranges, rangeText)}}`,
    );
    exchange.json(
      200,
      `{"initialized":${answer.initialized},` +
        `"localEndpoint":${quoted(answer.localEndpoint)},"keySpaces":${spaces}}`,
    );
  },
});

function registrationRoutes(adminTimeoutMs: number): readonly Route[] {
  return [
    adminRoute({
      ...shared,
      method: "POST",
      path: "/v1/ranges/register",
      summary: "Route a key space by ranges",
      table: spaceTable,
      answer: REGISTER,
      run: (exchange, port, [keySpace]) => {
        port.registerRange(keySpace, exchange.context(adminTimeoutMs), (answer) => {
          answerVerdict(exchange, answer, `"seeded":${answer.seeded},${modeText(answer)}`);
        });
      },
    }),
    adminRoute({
      ...shared,
      method: "POST",
      path: "/v1/ranges/unregister",
      summary: "Route a key space by hash again",
      table: spaceTable,
      answer: UNREGISTER,
      run: (exchange, port, [keySpace]) => {
        port.unregisterRange(keySpace, exchange.context(adminTimeoutMs), (answer) => {
          answerVerdict(exchange, answer, modeText(answer));
        });
      },
    }),
  ];
}

function mapRoutes(adminTimeoutMs: number): readonly Route[] {
  return [
    adminRoute({
      ...shared,
      method: "POST",
      path: "/v1/ranges/split",
      summary: "Split a key range",
      table: splitTable,
      answer: SPLIT,
      run: (exchange, port, [keySpace, splitKey]) => {
        port.splitRange({ keySpace, splitKey }, exchange.context(adminTimeoutMs), (answer) => {
          const rest =
            `"determinate":${answer.determinate},"newPartitionId":${answer.newPartitionId},` +
            `"newGeneration":${answer.newGeneration},"leaderHint":${quoted(answer.leaderHint)}`;
          answerVerdict(exchange, answer, rest);
        });
      },
    }),
    adminRoute({
      ...shared,
      method: "POST",
      path: "/v1/ranges/merge",
      summary: "Merge small neighbouring key ranges",
      answer: MERGE,
      run: (exchange, port) => {
        port.mergeRanges(exchange.context(adminTimeoutMs), (answer) => {
          const rest =
            `"determinate":${answer.determinate},"merges":${answer.merges},` +
            `"leaderHint":${quoted(answer.leaderHint)}`;
          answerVerdict(exchange, answer, rest);
        });
      },
    }),
  ];
}

/** `adminTimeoutMs`: longest handling time of the calls that change the map. */
export function rangeRoutes(adminTimeoutMs: number): readonly Route[] {
  return [LIST_ROUTE, ...registrationRoutes(adminTimeoutMs), ...mapRoutes(adminTimeoutMs)];
}
