/**
 * What a node may send to the leader of the meta partition to have it proposed there: one line for
 * each kind of command, and how its end goes back as bytes.
 *
 * Pure. Invariants: 1. What has no line is never taken from another node (P-128). 2. Reading is
 * strict and bounded. 3. Numbers of statuses are part of what travels.
 */
import type { ByteReader, ByteWriter } from "../../base/codec.js";
import { placementGeneration } from "../../base/ids.js";
import { PLACEMENT_ITEMS_MAX } from "../../base/limits.js";
import type {
  Command,
  HoldPlannerCommand,
  ItemOutcome,
  MetaStatus,
  PlacementCommand,
  RaiseLevelCommand,
  RangeMoveCommand,
  UnregisterRangeCommand,
} from "../../machine/commands/command.js";
import type { MemberCommand } from "../../machine/meta/meta-members.js";

export type MetaProposal =
  | MemberCommand
  | PlacementCommand
  | RaiseLevelCommand
  | RangeMoveCommand
  | UnregisterRangeCommand
  | HoldPlannerCommand;

export interface MetaProposalRule {
  /** What is larger is refused, where it is sent and where it arrives. */
  readonly maxBytes: number;
  /**
   * "linked": also who is no member, and hears that; "member": whom the leader's member list names;
   * "itself": the node that the command is about; "nobody": the leader alone decides to propose it.
   */
  readonly from: "linked" | "member" | "itself" | "nobody";
  /**
   * "always": it says what it was decided on, and a late copy changes nothing. "once": a late copy
   * could undo what came after, so that each ask is remembered and carried out once.
   */
  readonly repeats: "always" | "once";
}

/** An address and a data directory of a node, with what its program is. */
const MEMBER_BYTES = 2600;
/** A key space. */
const RANGE_BYTES = 1100;
/** Members of one group, or a few replicas of 64. */
const REPLICAS_BYTES = 8192;

export const META_PROPOSALS: Readonly<Record<MetaProposal["kind"], MetaProposalRule>> = {
  "update-member": { maxBytes: MEMBER_BYTES, from: "itself", repeats: "once" },
  "add-member": { maxBytes: MEMBER_BYTES, from: "linked", repeats: "once" },
  "set-member-role": { maxBytes: 64, from: "linked", repeats: "once" },
  "evict-member": { maxBytes: 64, from: "nobody", repeats: "once" },
  "remove-member": { maxBytes: 64, from: "linked", repeats: "once" },
  "raise-level": { maxBytes: 64, from: "member", repeats: "always" },
  "change-replicas": { maxBytes: 2048, from: "member", repeats: "always" },
  "report-replicas": { maxBytes: REPLICAS_BYTES, from: "member", repeats: "always" },
  "place-partition": { maxBytes: REPLICAS_BYTES, from: "member", repeats: "always" },
  "hold-planner": { maxBytes: RANGE_BYTES, from: "member", repeats: "once" },
  "unregister-range": { maxBytes: RANGE_BYTES, from: "nobody", repeats: "once" },
  "begin-move": { maxBytes: 3 * RANGE_BYTES, from: "nobody", repeats: "once" },
  "retry-move": { maxBytes: RANGE_BYTES, from: "member", repeats: "always" },
  "cut-range": { maxBytes: RANGE_BYTES, from: "member", repeats: "always" },
  "abort-move": { maxBytes: RANGE_BYTES, from: "member", repeats: "always" },
  "finish-move": { maxBytes: RANGE_BYTES, from: "member", repeats: "always" },
};

/** The largest of them (bytes). */
export const META_PROPOSAL_MAX_BYTES = Math.max(
  ...Object.values(META_PROPOSALS).map(({ maxBytes }) => maxBytes),
);

export function isMetaProposal(command: Command): command is MetaProposal {
  return Object.hasOwn(META_PROPOSALS, command.kind);
}

/** Whether `from` may send the command. `isMember`: by the member list applied here. */
export function maySend(from: number, isMember: boolean, command: MetaProposal): boolean {
  const rule = META_PROPOSALS[command.kind];
  if (rule.from === "member") return isMember;
  if (rule.from === "nobody") return false;
  return rule.from === "linked" || ("nodeId" in command && command.nodeId === from);
}

export type MetaResult =
  | {
      readonly status: "applied";
      readonly outcome: MetaStatus;
      readonly version: number;
      /** Of a command about several partitions: what became of each. */
      readonly items: readonly ItemOutcome[];
    }
  /** Certainly not proposed: nobody known leads, or nobody took it. */
  | { readonly status: "refused" }
  /** Not done now: a group still lists a former life of the node, or cannot be seen. */
  | { readonly status: "later" }
  | { readonly status: "unknown" };

const STATUS_NUMBERS: Readonly<Record<MetaStatus, number>> = {
  done: 0,
  unchanged: 1,
  "unknown-partition": 2,
  "not-founded": 3,
  invalid: 4,
  "not-a-member": 5,
  "storage-lost": 6,
  "was-removed": 7,
  "too-many-members": 8,
  "too-many-voters": 9,
  "last-voter": 10,
  "drain-in-progress": 11,
  "range-elsewhere": 12,
  stale: 13,
  "level-unsupported": 14,
  busy: 15,
  "not-placed": 16,
  "taken-in": 17,
  pending: 18,
  "too-many-partitions": 19,
  "too-many-attempts": 20,
};
const STATUSES = Object.keys(STATUS_NUMBERS) as MetaStatus[];

const APPLIED = 0;
const CODES = { refused: 1, unknown: 2, later: 3 } as const;

export function writeMetaResult(writer: ByteWriter, result: MetaResult): void {
  if (result.status !== "applied") {
    writer.uint8(CODES[result.status]);
    return;
  }
  writer.uint8(APPLIED).uint8(STATUS_NUMBERS[result.outcome]).uint53(result.version);
  writer.length(result.items.length);
  for (const { status, generation } of result.items) {
    writer.uint8(STATUS_NUMBERS[status]).uint53(generation);
  }
}

function readStatus(reader: ByteReader): MetaStatus {
  const number = reader.uint8();
  const status = STATUSES.find((name) => STATUS_NUMBERS[name] === number);
  if (status === undefined) reader.fail();
  return status ?? "invalid";
}

/** Null when the rest of the bytes is no result. */
export function readMetaResult(reader: ByteReader): MetaResult | null {
  const code = reader.uint8();
  if (code !== APPLIED) {
    const names = ["refused", "unknown", "later"] as const;
    const status = names.find((name) => CODES[name] === code);
    return status === undefined || !reader.isComplete() ? null : { status };
  }
  const outcome = readStatus(reader);
  const version = reader.uint53();
  const count = reader.length();
  if (count > PLACEMENT_ITEMS_MAX) return null;
  const items: ItemOutcome[] = [];
  for (let at = 0; at < count && !reader.failed; at++) {
    items.push({ status: readStatus(reader), generation: placementGeneration(reader.uint53()) });
  }
  return reader.isComplete() ? { status: "applied", outcome, version, items } : null;
}
