/**
 * How states, entries, messages and Readys are written in scenario files. Format only; decides
 * nothing.
 */
import {
  needsSnapshot,
  type CoreStatus,
  type HardState,
  type Membership,
  type PeerProgress,
  type Role,
} from "../../src/raft/state/types.js";
import { formatOperations } from "./change.js";
import { quote } from "./quote.js";
import { appendThread, applyThread, type Entry, type Snapshot, type WireMessage } from "./wire.js";

/** One Ready, as far as it is printed. */
export interface ReadyView {
  readonly mustSync: boolean;
  readonly softState: { readonly leader: number; readonly role: Role } | null;
  readonly hardState: HardState | null;
  readonly readStates: readonly { readonly context: number; readonly index: number }[];
  /** Our own: contexts of reads that were given up. */
  readonly droppedReads: readonly number[];
  readonly entries: readonly Entry[];
  readonly snapshot: Snapshot | null;
  readonly committed: readonly Entry[];
  readonly messages: readonly WireMessage[];
}

const roleNames: Readonly<Record<Role, string>> = {
  follower: "StateFollower",
  preCandidate: "StatePreCandidate",
  candidate: "StateCandidate",
  leader: "StateLeader",
};

const progressNames = {
  probe: "StateProbe",
  replicate: "StateReplicate",
  snapshot: "StateSnapshot",
} as const;

function formatTarget(id: number): string {
  if (id === appendThread) return "AppendThread";
  if (id === applyThread) return "ApplyThread";
  return id === 0 ? "None" : id.toString(16);
}

function formatList(ids: readonly number[]): string {
  return `[${ids.join(" ")}]`;
}

function formatMembership(membership: Membership): string {
  const { voters, votersOutgoing, learners, learnersNext, autoLeave } = membership;
  return (
    `Voters:${formatList(voters)} VotersOutgoing:${formatList(votersOutgoing)} ` +
    `Learners:${formatList(learners)} LearnersNext:${formatList(learnersNext)} ` +
    `AutoLeave:${String(autoLeave)}`
  );
}

export function formatSnapshot(snapshot: Snapshot): string {
  const { index, term, membership } = snapshot;
  return `Index:${index} Term:${term} ConfState:${formatMembership(membership)}`;
}

export function formatEntry(entry: Entry): string {
  const head = `${entry.term}/${entry.index} ${entry.type}`;
  if (entry.type === "EntryNormal") return `${head} ${quote(entry.data)}`;
  const text = formatOperations(entry.change?.operations ?? []);
  return text === "" ? head : `${head} ${text}`;
}

function formatHardState(state: HardState): string {
  const vote = state.vote === 0 ? "" : ` Vote:${state.vote}`;
  return `Term:${state.term}${vote} Commit:${state.commit}`;
}

/** One message, without a newline at its end. */
export function formatMessage(message: WireMessage, indent = ""): string {
  const { from, to, type, term, logTerm, index } = message;
  let text = `${indent}${formatTarget(from)}->${formatTarget(to)} ${type} `;
  text += `Term:${term} Log:${logTerm}/${index}`;
  if (message.reject) text += ` Rejected (Hint: ${message.rejectHint})`;
  if (message.type === "MsgAppResp" && message.reject && message.context === needsSnapshot)
    text += " NeedsSnapshot";
  if (message.commit !== 0) text += ` Commit:${message.commit}`;
  if (message.vote !== 0) text += ` Vote:${message.vote}`;
  const [only] = message.entries;
  if (only !== undefined && message.entries.length === 1) {
    text += ` Entries:[${formatEntry(only)}]`;
  } else if (message.entries.length > 1) {
    text += " Entries:[";
    for (const entry of message.entries) text += `\n${indent}  ${formatEntry(entry)}`;
    text += `\n${indent}]`;
  }
  if (message.snapshot !== null && message.snapshot.index > 0) {
    text += `\n${indent}  Snapshot: ${formatSnapshot(message.snapshot)}`;
  }
  if (message.responses.length > 0) {
    text += " Responses:[";
    for (const response of message.responses) text += `\n${formatMessage(response, `${indent}  `)}`;
    text += `\n${indent}]`;
  }
  return text;
}

/** The bytes of a read's context, as decimal numbers, high byte first. */
function formatContext(context: number): string {
  const bytes: number[] = [];
  for (let rest = context; rest > 0 || bytes.length === 0; rest = Math.floor(rest / 256)) {
    bytes.unshift(rest % 256);
  }
  return formatList(bytes);
}

export function formatReady(ready: ReadyView): string {
  const lines: string[] = [];
  const { softState, hardState } = ready;
  if (softState !== null) lines.push(`Lead:${softState.leader} State:${roleNames[softState.role]}`);
  if (hardState !== null) lines.push(`HardState ${formatHardState(hardState)}`);
  if (ready.readStates.length > 0) {
    const states = ready.readStates.map((read) => `{${read.index} ${formatContext(read.context)}}`);
    lines.push(`ReadStates [${states.join(" ")}]`);
  }
  if (ready.droppedReads.length > 0) lines.push(`DroppedReads ${formatList(ready.droppedReads)}`);
  if (ready.entries.length > 0) lines.push("Entries:", ...ready.entries.map(formatEntry));
  if (ready.snapshot !== null) lines.push(`Snapshot ${formatSnapshot(ready.snapshot)}`);
  if (ready.committed.length > 0) {
    lines.push("CommittedEntries:", ...ready.committed.map(formatEntry));
  }
  if (ready.messages.length > 0) {
    lines.push("Messages:", ...ready.messages.map((message) => formatMessage(message)));
  }
  if (lines.length === 0) return "<empty Ready>";
  return `Ready MustSync=${String(ready.mustSync)}:\n${lines.join("\n")}\n`;
}

export function formatProgress(peer: PeerProgress): string {
  let text = `${peer.id}: ${progressNames[peer.state]} match=${peer.match} next=${peer.next}`;
  if (peer.learner) text += " learner";
  if (peer.paused) text += " paused";
  if (peer.pendingSnapshot > 0) text += ` pendingSnap=${peer.pendingSnapshot}`;
  if (!peer.active) text += " inactive";
  if (peer.inflightCount > 0) {
    text += ` inflight=${peer.inflightCount}${peer.inflightFull ? "[full]" : ""}`;
  }
  return text;
}

export function formatState(status: CoreStatus): string {
  const { id, role, term, leader, membership } = status;
  const votes = membership.voters.includes(id) || membership.votersOutgoing.includes(id);
  const part = votes ? "(Voter)" : "(Non-Voter)";
  return `${id}: ${roleNames[role]} ${part} Term:${term} Lead:${leader}`;
}
