/**
 * By what peers know each other: the shared secret, and the node that a certificate is for.
 *
 * Owns the count of those who were turned away. Invariants: 1. With a secret nothing is told, taken
 * or judged of whoever did not prove that it knows it; the secret itself never travels. 2. A proof
 * is bound to its purpose, its direction and the fresh nonces of both sides: recorded, it opens
 * nothing. 3. Proofs are compared in constant time. 4. A certificate that names nodes is good for
 * these only.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { LoggerPort } from "../ports.js";

export interface CredentialSettings {
  /** What all peers know; null = nobody has to prove anything. */
  readonly secret: Uint8Array | null;
  /** A certificate that names no node is refused. */
  readonly requireNodeId: boolean;
}

/** What is proved: a proof of one kind is none of another. */
export type Purpose = "greeting" | "answer" | "confirm" | "refusal" | "question" | "reply";

const PROOF_BYTES = 32;
/** The first refusal is logged, and then one of so many. */
const LOGGED_EVERY = 100;
const NODE_URI = /^svc:node:(.*)$/;

/** URIs of the text that the platform makes of a certificate's alternative names. */
function namesOf(text: string): string[] {
  const found: string[] = [];
  // A value with a comma or a quote in it is written as a JSON string.
  const entry = /([^:,]+):("(?:[^"\\]|\\.)*"|[^,]*)(?:, |$)/y;
  for (let match = entry.exec(text); match !== null; match = entry.exec(text)) {
    const [, kind, value = ""] = match;
    if (kind === "URI") found.push(value);
  }
  return found;
}

/** Node ids that a certificate with these alternative names is for; null: it names no node. */
export function namedNodes(alternativeNames: string | undefined): readonly number[] | null {
  const named = namesOf(alternativeNames ?? "")
    .map((uri) => NODE_URI.exec(uri)?.[1])
    .filter((id) => id !== undefined);
  // What is malformed names nobody, and is not the same as no name.
  return named.length === 0 ? null : named.map((id) => (/^\d{1,5}$/.test(id) ? Number(id) : 0));
}

export class PeerCredentials {
  private isWarned = false;
  /** Connections of peers whose certificate is for another node. */
  otherIdentities = 0;
  /** Connections and questions of those who did not prove to know the secret. */
  unproven = 0;

  constructor(
    private readonly settings: CredentialSettings,
    private readonly logger: LoggerPort,
  ) {}

  get hasSecret(): boolean {
    return this.settings.secret !== null;
  }

  /** `body` with the proof behind it; without a secret the body alone. */
  seal(purpose: Purpose, body: Uint8Array, ...context: readonly Uint8Array[]): Uint8Array {
    const { secret } = this.settings;
    if (secret === null) return body;
    return Buffer.concat([body, this.proof(secret, purpose, body, context)]);
  }

  /** The body of what was sealed for this purpose and context; null when it was not. */
  open(purpose: Purpose, sealed: Uint8Array, ...context: readonly Uint8Array[]): Uint8Array | null {
    const { secret } = this.settings;
    if (secret === null) return sealed;
    const at = sealed.length - PROOF_BYTES;
    if (at < 0) return null;
    const body = sealed.subarray(0, at);
    const wanted = this.proof(secret, purpose, body, context);
    return timingSafeEqual(wanted, sealed.subarray(at)) ? body : null;
  }

  /** Whether the other side of a connection may be the node that it says it is. */
  isNode(socket: Socket | undefined, nodeId: number): boolean {
    const nodes = this.certified(socket);
    const isGood = nodes === null ? !this.settings.requireNodeId : nodes.includes(nodeId);
    if (!isGood) this.refuseIdentity(nodeId, socket);
    return isGood;
  }

  /** Whether the other side may answer a question, without saying which node it is. */
  isSomeNode(socket: Socket | undefined): boolean {
    const isGood = this.certified(socket) !== null || !this.settings.requireNodeId;
    if (!isGood) this.refuseIdentity(0, socket);
    return isGood;
  }

  /** Counts and logs one who could not prove what it should. */
  refuseUnproven(socket: Socket | undefined): void {
    this.unproven += 1;
    if (this.unproven === 1 || this.unproven % LOGGED_EVERY === 0) {
      const address = socket?.remoteAddress ?? "";
      const event = "A peer did not prove that it knows the secret: is the file the same on all?";
      this.logger.log("warn", event, { address, refused: this.unproven });
    }
  }

  private refuseIdentity(nodeId: number, socket: Socket | undefined): void {
    this.otherIdentities += 1;
    if (this.otherIdentities === 1 || this.otherIdentities % LOGGED_EVERY === 0) {
      const address = socket?.remoteAddress ?? "";
      const event = "A peer's certificate is not for the node that it claims to be.";
      this.logger.log("warn", event, { nodeId, address, refused: this.otherIdentities });
    }
  }

  private certified(socket: Socket | undefined): readonly number[] | null {
    const { getPeerX509Certificate } = (socket ?? {}) as Partial<TLSSocket>;
    // Without TLS there is nothing to name a node, and nothing that could be required.
    if (getPeerX509Certificate === undefined) return null;
    const nodes = namedNodes(getPeerX509Certificate.call(socket)?.subjectAltName);
    if (nodes === null && !this.settings.requireNodeId && !this.isWarned) {
      this.isWarned = true;
      const advice = "give each node a certificate with the URI svc:node:<id>";
      this.logger.log("warn", "A peer's certificate names no node: it may be any.", { advice });
    }
    return nodes;
  }

  private proof(
    secret: Uint8Array,
    purpose: Purpose,
    body: Uint8Array,
    context: readonly Uint8Array[],
  ): Buffer {
    const mac = createHmac("sha256", secret).update(`svc peer ${purpose}\0`);
    for (const part of [...context, body]) {
      const size = Buffer.alloc(4);
      size.writeUInt32BE(part.length);
      mac.update(size).update(part);
    }
    return mac.digest();
  }
}
