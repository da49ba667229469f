/**
 * One endpoint as the engine uses it, whatever the wire. Types only.
 */
import type { Try } from "./try.js";

export interface TransportNode {
  /** Whether a request would leave at once. */
  readonly ready: boolean;
  /** Makes connections that do not stand yet. */
  warm(): void;
  send(attempt: Try): void;
  /** A try got no answer in its time: look after the connection that it went to. */
  suspect(attempt: Try): void;
  /** Resolves when its connections are gone; never rejects. */
  close(): Promise<void>;
}
