/**
 * How the monotonic clocks of the other nodes go on, as they tell in tiny frames on the lane
 * "control": the lease clocks of sleeping groups go on with them, without a message per group.
 *
 * Invariants: 1. Only a node that leads a sleeping group in which leases may run tells its clock,
 * to linked members of such groups: nobody else counts on it. 2. What a node told is forgotten with
 * its link: its next life may count from elsewhere. 3. Reading is strict and bounded (P-128).
 */
import { ByteReader, ByteWriter } from "../base/codec.js";
import { allMembers } from "../raft/state/membership.js";
import type { Membership } from "../raft/state/types.js";
import { ControlMark } from "./replication/control-marks.js";

const MARK = ControlMark.clock;
const FRAME_BYTES = 9;
/** Pause between two frames (ms): what a leader's death may add to the leases of its groups. */
const EVERY_MS = 250;

/** One group of this node; a replica is one. */
export interface ClockedGroup {
  readonly peers: { readonly isQuiesced: boolean };
  /** It is led here, and leases may run in it. */
  readonly hasLeases: boolean;
  readonly members: { readonly membership: Membership };
}

export interface NodeClocksDeps {
  /** The linked nodes. */
  linked(): Iterable<number>;
  /** The groups of this node. */
  hosted(): Iterable<{ readonly replica: ClockedGroup }>;
  send(to: number, bytes: Uint8Array): void;
}

export class NodeClocks {
  private readonly toldMs = new Map<number, number>();
  private nextAtMs = 0;
  private wanted = false;

  constructor(private readonly deps: NodeClocksDeps) {}

  /** When a turn is wanted for `check`; while no group sleeps it goes along with others. */
  get wakeAtMs(): number {
    return this.wanted ? this.nextAtMs : Infinity;
  }

  /** Tells this node's clock if it is time; inside a turn. */
  check(nowMs: number): void {
    if (nowMs < this.nextAtMs) return;
    this.nextAtMs = nowMs + EVERY_MS;
    const audience = this.audience();
    this.wanted = audience.size > 0;
    if (!this.wanted) return;
    const frame = new ByteWriter(FRAME_BYTES).uint8(MARK).uint53(Math.floor(nowMs)).finish();
    for (const node of audience) this.deps.send(node, frame);
  }

  /** The linked members of groups led here that sleep while leases run. */
  private audience(): ReadonlySet<number> {
    const linked = new Set(this.deps.linked());
    const audience = new Set<number>();
    for (const { replica } of this.deps.hosted()) {
      // Where all groups are everywhere, the first one has everybody.
      if (audience.size === linked.size) break;
      if (!replica.hasLeases || !replica.peers.isQuiesced) continue;
      for (const node of allMembers(replica.members.membership)) {
        if (linked.has(node)) audience.add(node);
      }
    }
    return audience;
  }

  /** Takes a frame of the lane "control" if it is one of this file; false: it is not. */
  frame(from: number, bytes: Uint8Array): boolean {
    if (bytes[0] !== MARK) return false;
    const reader = new ByteReader(bytes, 1);
    const nodeMs = reader.uint53();
    if (reader.isComplete()) this.toldMs.set(from, Math.max(nodeMs, this.of(from)));
    return true;
  }

  /** The latest that `node` told of its clock (ms); 0 = nothing. */
  of(node: number): number {
    return this.toldMs.get(node) ?? 0;
  }

  /** Everybody who counts on the clock of `node` has taken what there was. */
  linkDown(node: number): void {
    this.toldMs.delete(node);
  }
}
