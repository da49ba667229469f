/**
 * Which data directory each other node had when this one first met it, and the last start of that
 * directory that was let in: a row of the node itself.
 *
 * The member list says the directory as soon as it knows; until then a founder that lost its disk
 * would be taken for the one that voted (P-090). The start says when a directory is an older copy
 * of itself (P-190). Invariants: 1. What is not durable here counts as unknown to the rest of the
 * host: such a node is not listened to yet. 2. Reading is strict. 3. Who is not listed is forgotten
 * when the member list is known: removed members do not fill the row.
 */
import { assert } from "../../base/assert.js";
import { ByteReader, ByteWriter } from "../../base/codec.js";
import { MEMBERS_MAX } from "../../base/limits.js";
import { type ByteKey, nodeRowKey } from "../../machine/store/keys.js";
import type { PeerBoot, PeerHello } from "../../ports.js";

const VERSION = 2;
const KEY: ByteKey = nodeRowKey("peers");

export interface KnownPeersDeps {
  get(key: ByteKey): Uint8Array | null;
  put(key: ByteKey, value: Uint8Array): void;
  /** `done` is called, in no turn, when all that was put is durable. */
  flushSoon(done: () => void): void;
}

/** A data directory and the last start of it that was let in. */
interface KnownPeer extends Pick<PeerBoot, "bootNumber" | "bootNonce"> {
  readonly storageId: string;
}

type Introduction = Pick<PeerHello, "nodeId" | "storageId" | keyof PeerBoot>;

export class KnownPeers {
  private readonly peers = new Map<number, KnownPeer>();
  private readonly durable = new Set<number>();

  constructor(private readonly deps: KnownPeersDeps) {}

  /** Once, before the first handshake. */
  load(): void {
    const bytes = this.deps.get(KEY);
    if (bytes === null) return;
    const reader = new ByteReader(bytes);
    assert(reader.uint8() === VERSION, "the row of known nodes is of a known version");
    const count = reader.length();
    for (let at = 0; at < count && !reader.failed; at++) {
      const node = reader.uint32();
      const boot = { bootNumber: reader.uint32(), bootNonce: reader.uint32() };
      this.peers.set(node, { ...boot, storageId: reader.text() });
      this.durable.add(node);
    }
    assert(reader.isComplete(), "the row of known nodes is whole");
  }

  /** "" = never met. */
  storageIdOf(node: number): string {
    return this.peers.get(node)?.storageId ?? "";
  }

  /** Whether what `node` says may be listened to. */
  isDurable(node: number): boolean {
    return this.durable.has(node);
  }

  /**
   * A start of the same directory was let in before of which this one knows nothing: it is an older
   * copy. What a directory says of starts longer ago than it tells is believed.
   */
  isOvertaken({ nodeId, storageId, bootNumber, bootNonce, earlierNonces }: Introduction): boolean {
    const known = this.peers.get(nodeId);
    if (known?.storageId !== storageId) return false;
    const startsSince = bootNumber - known.bootNumber;
    if (startsSince < 0) return true;
    const told = startsSince === 0 ? bootNonce : earlierNonces[startsSince - 1];
    return told !== undefined && told !== known.bootNonce;
  }

  /** A listed node was let in. */
  learn({ nodeId, storageId, bootNumber, bootNonce }: Introduction): void {
    const known = this.peers.get(nodeId);
    if (known === undefined && this.peers.size >= MEMBERS_MAX) return;
    if (known?.storageId === storageId && known.bootNumber >= bootNumber) return;
    const learned = { storageId, bootNumber, bootNonce };
    this.peers.set(nodeId, learned);
    this.durable.delete(nodeId);
    this.store();
    this.deps.flushSoon(() => {
      if (this.peers.get(nodeId) === learned) this.durable.add(nodeId);
    });
  }

  /** Forgets all others. */
  keep(isListed: (node: number) => boolean): void {
    const unlisted = [...this.peers.keys()].filter((node) => !isListed(node));
    if (unlisted.length === 0) return;
    for (const node of unlisted) {
      this.peers.delete(node);
      this.durable.delete(node);
    }
    this.store();
  }

  private store(): void {
    const writer = new ByteWriter(256).uint8(VERSION).length(this.peers.size);
    for (const [node, { storageId, bootNumber, bootNonce }] of this.peers) {
      writer.uint32(node).uint32(bootNumber).uint32(bootNonce).text(storageId);
    }
    this.deps.put(KEY, writer.finish());
  }
}
