/**
 * Which data directory each other node had when this one first met it: a row of the node itself.
 *
 * The roster says the same as soon as it knows; until then a founder that lost its disk would be
 * taken for the one that voted (P-090). May call: base, machine keys. Invariants: 1. What is not
 * durable here counts as unknown to the rest of the host: such a node is not listened to yet. 2.
 * Reading is strict.
 */
import { assert } from "../base/assert.js";
import { ByteReader, ByteWriter } from "../base/codec.js";
import { type ByteKey, nodeRowKey } from "../machine/keys.js";

const VERSION = 1;
const KEY: ByteKey = nodeRowKey("peers");
const PEERS_MAX = 4096;

export interface KnownPeersWorld {
  get(key: ByteKey): Uint8Array | null;
  put(key: ByteKey, value: Uint8Array): void;
  /** `done` is called, in no turn, when all that was put is durable. */
  flushSoon(done: () => void): void;
}

export class KnownPeers {
  private readonly storageIds = new Map<number, string>();
  private readonly durable = new Set<number>();

  constructor(private readonly world: KnownPeersWorld) {}

  /** Once, before the first handshake. */
  load(): void {
    const bytes = this.world.get(KEY);
    if (bytes === null) return;
    const reader = new ByteReader(bytes);
    assert(reader.uint8() === VERSION, "the row of known nodes is of a known version");
    const count = reader.length();
    for (let at = 0; at < count && !reader.failed; at++) {
      const node = reader.uint32();
      this.storageIds.set(node, reader.text());
      this.durable.add(node);
    }
    assert(reader.isComplete(), "the row of known nodes is whole");
  }

  /** "" = never met. */
  storageIdOf(node: number): string {
    return this.storageIds.get(node) ?? "";
  }

  /** Whether what `node` says may be listened to. */
  isDurable(node: number): boolean {
    return this.durable.has(node);
  }

  /** `node` was let in with `storageId`. */
  learn(node: number, storageId: string): void {
    if (this.storageIds.get(node) === storageId || this.storageIds.size >= PEERS_MAX) return;
    this.storageIds.set(node, storageId);
    this.durable.delete(node);
    const writer = new ByteWriter(256).uint8(VERSION).length(this.storageIds.size);
    for (const [known, id] of this.storageIds) writer.uint32(known).text(id);
    this.world.put(KEY, writer.finish());
    this.world.flushSoon(() => {
      if (this.storageIds.get(node) === storageId) this.durable.add(node);
    });
  }
}
