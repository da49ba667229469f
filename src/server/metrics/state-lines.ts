/**
 * The metrics of what this node is in its cluster, and of what lies on its disks.
 *
 * Invariants: 1. Reading changes nothing. 2. Every series has its HELP and TYPE before its samples.
 */
import type { NodeFacts } from "../../host/requests/results.js";
import type { MemberRole } from "../../machine/commands/command.js";
import { family, scalar } from "./exposition.js";

/** The members of the cluster, as this node has applied them. */
export interface Roster {
  readonly roles: Readonly<Record<MemberRole, number>>;
  /** 0 = none is known. */
  readonly membershipVersion: number;
}

export interface StorageFigures {
  readonly storeMaxBytes: number;
  readonly usedBytes: number;
  readonly readAgeMs: number;
  /** What is free on each volume, as far as is known. */
  readonly volumes: ReadonlyMap<string, { readonly free: number; readonly isShort: boolean }>;
}

export function rosterLines(lines: string[], isReady: boolean, roster: Roster): void {
  const ready = "1 when this node is ready (GET /readyz)";
  scalar(lines, "svc_ready", "gauge", ready, isReady ? 1 : 0);
  const members = "svc_members";
  family(lines, members, "gauge", "Members of the cluster, by role");
  for (const [role, count] of Object.entries(roster.roles)) {
    lines.push(`${members}{role="${role}"} ${count}`);
  }
  const version = "Version of the list of members; 0 = none is known";
  scalar(lines, "svc_membership_version", "gauge", version, roster.membershipVersion);
}

export function storageLines(lines: string[], facts: StorageFigures): void {
  const gauge = (name: string, help: string, value: number): void =>
    scalar(lines, name, "gauge", help, value);
  gauge("svc_store_max_bytes", "Bound of the file of the state store", facts.storeMaxBytes);
  gauge("svc_store_used_bytes", "Bytes of its pages that hold rows", facts.usedBytes);
  const age = "For so long a read transaction of the state store has been open";
  gauge("svc_open_read_transactions_age_seconds", age, facts.readAgeMs / 1000);
  const free = "svc_storage_free_bytes";
  family(lines, free, "gauge", "What is free on the volume, as asked last");
  for (const [volume, bytes] of facts.volumes) {
    lines.push(`${free}{volume="${volume}"} ${bytes.free}`);
  }
  const short = "svc_storage_short";
  family(lines, short, "gauge", "1 while so little is free that no writes are taken");
  for (const [volume, { isShort }] of facts.volumes) {
    lines.push(`${short}{volume="${volume}"} ${isShort ? 1 : 0}`);
  }
}

export function proposalLines(lines: string[], { proposalEnds }: NodeFacts): void {
  const name = "svc_proposals_total";
  family(lines, name, "counter", "Commands proposed on this node, by how they ended");
  for (const [result, count] of Object.entries(proposalEnds)) {
    lines.push(`${name}{result="${result}"} ${count}`);
  }
}
