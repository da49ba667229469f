/**
 * What a watch and the stream that carries it say to each other. Types only.
 *
 * Invariants: 1. Nothing is heard after `close`, nor after the news that it is over.
 */
import type { SvcError } from "../values/errors.js";

/** Who hears of a watch over gRPC. */
export interface WatchListener {
  /** A whole message; throws when it cannot be read. */
  message(bytes: Buffer): void;
  /** It is over, and nothing follows. */
  lost(failure: SvcError): void;
}

/** A watch over gRPC. */
export interface WatchLink {
  send(message: Uint8Array): void;
  /** Little more comes until `resume`. */
  pause(): void;
  resume(): void;
  /** Nothing is heard of it any more. */
  close(): void;
}
