/** What links begin with, and the questions of a node that belongs to no cluster yet. */
import {
  NO_NONCE,
  decodeChallenge,
  decodeGreeting,
  decodeIdentityAnswer,
  decodeJoinAnswer,
  decodeJoinRequest,
  decodeRefusal,
  encodeChallenge,
  encodeGreeting,
  encodeIdentityAnswer,
  encodeJoinAnswer,
  encodeJoinRequest,
  encodeQuestion,
  encodeRefusal,
  isQuestion,
} from "../../../src/net/packets.js";
import type { JoinAnswer, PeerRefusal } from "../../../src/ports.js";
import { type Format, format } from "./format.js";

const VERSION = 3;
const PROGRAM = {
  levels: { min: 1, max: 2 },
  protocols: { min: 4, max: 300 },
  version: "0.1.0",
};
const PROFILE = {
  clusterId: "cluster",
  nodeId: 7,
  storageId: "5709a9e0",
  endpoint: "node-7.example:9000",
  clientEndpoint: "https://node-7.example:8443",
  storage: "lmdb" as const,
  program: PROGRAM,
};
const HELLO = { ...PROFILE, bootNumber: 3, bootNonce: 2 ** 32 - 1, earlierNonces: [1, 0, 5] };
const NONCE = Uint8Array.from({ length: 16 }, (_, at) => at + 1);

const REFUSALS: readonly PeerRefusal[] = [
  ...(["other-cluster", "other-node", "storage-lost", "protocol", "not-a-member"] as const),
  ...(["other-storage", "other-identity", "level"] as const),
];
const LANES = ["log", "control", "calls", "bulk"] as const;

const JOIN_ANSWERS: readonly JoinAnswer[] = [
  { status: "accepted", clusterId: "cluster", level: 2, founders: [1, 2, 3] },
  { status: "retry", reason: "nobody leads" },
  { status: "refused", reason: "the program is too old" },
];

export const HANDSHAKE_FORMATS: Readonly<Record<string, Format>> = {
  handshake: format(
    VERSION,
    LANES.map((lane) => ({ hello: HELLO, lane, target: 2, nonce: NONCE, answerTo: NO_NONCE })),
    encodeGreeting,
    decodeGreeting,
  ),
  "handshake, refusal": format(
    VERSION,
    REFUSALS.map((refusal) => {
      const by = { nodeId: 2, endpoint: "node-2.example:9000" };
      return { by, refusal, program: PROGRAM, answerTo: NONCE };
    }),
    encodeRefusal,
    decodeRefusal,
  ),
  "handshake, challenge": format(VERSION, [NONCE], encodeChallenge, decodeChallenge),
  "handshake, question": format(
    VERSION,
    ["who are you"],
    () => encodeQuestion(),
    (bytes) => (isQuestion(bytes) ? "who are you" : null),
  ),
  "handshake, identity": format(
    VERSION,
    (["empty", "founding", "founded"] as const).map((state) => ({
      ...PROFILE,
      state,
      founders: [
        { nodeId: 1, storageId: "one" },
        { nodeId: 7, storageId: "5709a9e0" },
      ],
    })),
    encodeIdentityAnswer,
    decodeIdentityAnswer,
  ),
  "handshake, join request": format(
    VERSION,
    (["lmdb", "memory"] as const).map((storage) => {
      const { nodeId, storageId, endpoint } = PROFILE;
      return { nodeId, storageId, endpoint, storage, program: PROGRAM };
    }),
    encodeJoinRequest,
    decodeJoinRequest,
  ),
  "handshake, join answer": format(VERSION, JOIN_ANSWERS, encodeJoinAnswer, decodeJoinAnswer),
};
