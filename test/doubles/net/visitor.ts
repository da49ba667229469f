/** Somebody who calls a peer listener over TLS, to see whether it is let in. */
import { connect } from "node:tls";
import type { PeerTls } from "../../../src/net/settings.js";
import { LANE_OPENING } from "../../../src/net/wire.js";

export interface Met {
  readonly isLetIn: boolean;
  /** The handshake went on with `session`. */
  readonly isResumed: boolean;
  readonly fingerprint: string;
  /** Ticket that would resume the session. */
  readonly session: Buffer | undefined;
}

/** Who is let in hears how lanes are opened, who is not hears the end. */
export function meetPeer(port: number, tls: PeerTls, session?: Buffer): Promise<Met> {
  return new Promise((resolve) => {
    const { certificate: cert, key } = tls;
    const resumed = session === undefined ? {} : { session };
    const way = { host: "127.0.0.1", port, ALPNProtocols: ["h2"], rejectUnauthorized: false };
    const socket = connect({ ...way, cert, key, ...resumed });
    let [isResumed, fingerprint] = [false, ""];
    let given: Buffer | undefined;
    socket.on("session", (ticket: Buffer) => (given = ticket));
    socket.write(LANE_OPENING);
    socket.on("secureConnect", () => {
      isResumed = socket.isSessionReused();
      fingerprint = socket.getPeerCertificate().fingerprint256;
    });
    const end = (isLetIn: boolean): void => {
      resolve({ isLetIn, isResumed, fingerprint, session: given });
      socket.destroy();
    };
    socket.on("error", () => end(false));
    socket.on("close", () => end(false));
    socket.on("data", () => setTimeout(() => end(true), 50));
  });
}
