/** A client that opens streams and resets them. */
import { type ClientHttp2Session, constants, type OutgoingHttpHeaders } from "node:http2";

export const ENHANCE_YOUR_CALM = constants.NGHTTP2_ENHANCE_YOUR_CALM;
/** Streams that are open at a time: below what every server permits. */
const AT_A_TIME = 100;

/**
 * Opens and resets `count` streams. Resolves with the code that the server ended the connection
 * with, or null when it did not.
 */
export async function resetStreams(
  session: ClientHttp2Session,
  headers: OutgoingHttpHeaders,
  count: number,
): Promise<number | null> {
  const { NGHTTP2_CANCEL } = constants;
  let code: number | null = null;
  session.on("error", () => undefined);
  session.on("goaway", (told: number) => (code ??= told));
  const isOver = (): boolean => session.destroyed || session.closed;
  // A stream that is reset before it left is never sent: the ping behind it comes back first.
  const round = (): Promise<void> =>
    new Promise((resolve) => {
      if (isOver() || !session.ping(() => resolve())) resolve();
    });
  if (session.connecting) await new Promise((resolve) => session.once("connect", resolve));
  for (let at = 0; at < count && !isOver(); at += AT_A_TIME) {
    const streams = Array.from({ length: AT_A_TIME }, () => session.request(headers));
    for (const stream of streams) stream.on("error", () => undefined).resume();
    await round();
    for (const stream of streams) stream.close(NGHTTP2_CANCEL);
    await round();
  }
  return code;
}
