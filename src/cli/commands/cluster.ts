/** The operations on membership, placement and key ranges, as data. */
import { FINALIZE, LEAVE, MEMBERSHIP, PLACEMENT, REPLICATION_FACTOR } from "../../api/cluster.js";
import { MERGED, RANGES, SPLIT, UNREGISTERED } from "../../api/ranges.js";
import { BOOLEAN, described, list, membersOf, object, STATUS_DOCUMENT, TEXT } from "./schemas.js";
import type { CommandSpec } from "./command.js";
import { command } from "./entry.js";

const CLUSTER: readonly CommandSpec[] = [
  command({
    name: "--cluster-status",
    area: "Membership",
    meaning: "the whole cluster at a glance: nodes, leaders, replication, what is wrong",
    optional: ["--watch"],
    examples: [
      "svc-cli --cluster-status",
      "svc-cli -c http://a:8083,http://b:8083 --cluster-status --watch",
    ],
    answers: [
      "healthy: 3 node(s), 3 ready; membership version 3",
      "DEGRADED: 3 node(s), 2 ready, 1 unreachable; membership version 3 (exit code 1)",
      "! node 3 (http://c:8083) cannot be reached: connection refused",
      "(table)",
      "Partitions: 17 of 17 have a leader",
    ],
    module: "status",
    document: STATUS_DOCUMENT,
  }),
  command({
    name: "--cluster-members",
    area: "Membership",
    meaning: "list the members of the cluster",
    examples: ["svc-cli --cluster-members"],
    answers: ["Membership version 1  Local role Voter  Initialized true", "(table)"],
    module: "cluster",
    document: described(MEMBERSHIP),
  }),
  command({
    name: "--cluster-leave",
    area: "Membership",
    meaning: "remove the node of --node (or of a single -c), or with --member one that is gone",
    optional: ["--member"],
    examples: [
      "svc-cli --cluster-leave --node http://10.0.0.7:8083",
      "svc-cli -c http://a:8083,http://b:8083 --cluster-leave --member 3",
    ],
    answers: [
      "Node http://10.0.0.7:8083  Outcome Committed  Membership version 5",
      "Node http://10.0.0.7:8083  Outcome RefusedInsufficientVoters  Membership version 4",
      "Member 3  Outcome Committed  Membership version 6",
    ],
    module: "cluster",
    question: "Remove {leaver} from the cluster?",
    limited: false,
    document: described(LEAVE),
  }),
  command({
    name: "--cluster-finalize",
    area: "Membership",
    meaning: "raise the level of the cluster after an upgrade of all members; there is no way back",
    optional: ["--level"],
    examples: ["svc-cli --cluster-finalize", "svc-cli --cluster-finalize --level 2"],
    answers: [
      "Finalized: level 2.",
      "Already finalized: level 2.",
      "Refused: status RefusedMembers — 1 of 3 members do not support level 2.",
      "(table)",
    ],
    module: "cluster",
    question: "Finalize the upgrade? No node can go back to the version before afterwards.",
    document: described(FINALIZE),
  }),
  command({
    name: "--cluster-placement",
    area: "Placement",
    meaning: "where each partition has its replicas",
    examples: ["svc-cli --cluster-placement"],
    answers: [
      "Replication factor 0 (full replication)  Rebalancer disabled  " +
        "Node 127.0.0.1:8084 hosts 16 of 16 partitions",
      "(table)",
    ],
    module: "cluster",
    document: described(PLACEMENT),
  }),
  command({
    name: "--set-replication-factor",
    kind: "int32",
    valueName: "n",
    area: "Placement",
    meaning: "override the replication factor of one partition; 0 inherits the global one",
    required: ["--partition"],
    examples: ["svc-cli --set-replication-factor 3 --partition 7"],
    answers: [
      "Committed: partition 7 replication factor override set to 3 (generation 2).",
      "Refused: status InvalidInput — unknown partition",
    ],
    module: "cluster",
    document: described(REPLICATION_FACTOR),
  }),
];

/** Every endpoint answers for itself. */
const SWITCHED = membersOf(UNREGISTERED);

const RANGE_COMMANDS: readonly CommandSpec[] = [
  command({
    name: "--ranges",
    area: "Key ranges",
    meaning: "list key spaces with their ranges, and what moves",
    optional: ["--key-space"],
    examples: ["svc-cli --ranges", "svc-cli --ranges --key-space users"],
    answers: [
      "Node 127.0.0.1:8084 initialized  1 key space(s)",
      "users  routed by KeyRange on this node",
      "(table)",
      "Moving  split: users/m to +inf, partition 1 to 17, copying, attempt 1",
    ],
    module: "ranges",
    document: described(RANGES),
  }),
  command({
    name: "--register-key-range",
    valueName: "key-space",
    area: "Key ranges",
    meaning: "route a key space by ranges, on every endpoint of -c",
    examples: ["svc-cli -c http://a:8083,http://b:8083 --register-key-range users"],
    answers: ["Seeded: http://a:8083 — …", "Refused: http://b:8083 — status InvalidInput — …"],
    module: "ranges",
    document: list(object({ endpoint: TEXT, seeded: BOOLEAN, ...SWITCHED })),
  }),
  command({
    name: "--unregister-key-range",
    valueName: "key-space",
    area: "Key ranges",
    meaning: "route a key space by its hash again, on every endpoint of -c",
    examples: ["svc-cli --unregister-key-range users"],
    answers: [
      "Removed: http://a:8083 — …",
      "Refused: http://a:8083 — status QuiesceWindowOpen — …",
    ],
    module: "ranges",
    question: "Unregister the key space {value}? Its data moves back to its hash partition.",
    document: list(object({ endpoint: TEXT, ...SWITCHED })),
  }),
  command({
    name: "--split-range",
    valueName: "key-space",
    area: "Key ranges",
    meaning: "split the range that covers a key",
    required: ["--split-key"],
    examples: ["svc-cli --split-range users --split-key users/m"],
    answers: [
      "Split: users at users/m — partition 17 at generation 2.",
      "Not split: status NoRange — …",
      "Not split: status Indeterminate — …",
      "Outcome open: read --ranges again.",
    ],
    module: "ranges",
    document: described(SPLIT),
  }),
  command({
    name: "--merge-ranges",
    area: "Key ranges",
    meaning: "fold adjacent ranges that have become small",
    examples: ["svc-cli --merge-ranges"],
    answers: [
      "Merge pass complete: folded 1 adjacent pair(s).",
      "Merge pass complete: no adjacent ranges were small enough to fold.",
    ],
    module: "ranges",
    document: described(MERGED),
  }),
];

export const CLUSTER_COMMANDS: readonly CommandSpec[] = [...CLUSTER, ...RANGE_COMMANDS];
