/**
 * What the packets of a lane travel on: a socket of their own, or a stream of HTTP/2, which is what
 * programs of level 1 speak. The first bytes of a connection tell the two apart.
 *
 * Invariants: 1. A connection that does not begin as LANE_OPENING does is HTTP/2's, with all of its
 * bytes. 2. Both sides open before they say anything else: whoever called and hears another
 * beginning knows that it met an older program. 3. Destroying leaves no socket behind.
 */
import type { ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { GRPC_CONTENT_TYPE } from "./dial.js";

/** First bytes of a lane, each way; HTTP/2 begins with others on either side. For good. */
export const LANE_OPENING: Uint8Array = Buffer.from("svclane1", "latin1");

/** What a connection's first bytes are; a broken opening is nobody's. */
export type Opened = "short" | "lane" | "other" | "broken";

/** Takes LANE_OPENING off the beginning of a connection. */
export class OpeningReader {
  private matched = 0;
  /** What came in the last piece behind the opening. */
  rest: Uint8Array = LANE_OPENING.subarray(0, 0);

  /** The next piece of the connection; no more is taken once it is told apart. */
  push(piece: Uint8Array): Opened {
    let at = 0;
    while (at < piece.length && this.matched < LANE_OPENING.length) {
      if (piece[at] !== LANE_OPENING[this.matched]) return this.matched === 0 ? "other" : "broken";
      at += 1;
      this.matched += 1;
    }
    this.rest = piece.subarray(at);
    return this.matched === LANE_OPENING.length ? "lane" : "short";
  }
}

/** The side of a lane that was called. */
export interface InboundWire {
  readonly stream: Duplex;
  /** The connection that has no other use. */
  readonly connection: Socket | ServerHttp2Session | undefined;
  readonly socket: Socket | undefined;
  destroy(): void;
}

export function wireOfSocket(socket: Socket): InboundWire {
  return { stream: socket, connection: socket, socket, destroy: () => void socket.destroy() };
}

/** Answers the call of a Link stream. */
export function wireOfStream(stream: ServerHttp2Stream): InboundWire {
  const session = stream.session as ServerHttp2Session | undefined;
  stream.respond({ ":status": 200, "content-type": GRPC_CONTENT_TYPE }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
  return {
    stream,
    connection: session,
    get socket() {
      return session?.socket as Socket | undefined;
    },
    destroy: () => {
      stream.destroy();
      // At once: left to the end of the turn, the library may wait with what it was about to write.
      session?.destroy();
    },
  };
}
