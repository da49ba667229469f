/**
 * Receives request bodies within their bounds.
 *
 * Owns the data listeners of one request. Invariants: 1. Never more than the limit is held. 2. A
 * body that is too large, too slow or cut off ends the exchange; otherwise `done` is called once,
 * in a later turn. 3. A body in one piece, the usual case, is passed on without a copy.
 */
import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import { constants } from "node:http2";
import { HTTP_LINGER_MS } from "../../base/limits.js";
import type { Exchange } from "./exchange.js";

const EMPTY = Buffer.alloc(0);
const JSON_TYPE = /^application\/json[\t ]*(?:;[\t ]*charset=(?:utf-8|"utf-8")[\t ]*)?;?$/i;

/** True for `application/json`, also with `charset=utf-8`. */
export function isJsonType(contentType: string | undefined): boolean {
  if (contentType === "application/json") return true;
  return contentType !== undefined && JSON_TYPE.test(contentType);
}

/** False when the headers say that there is a body. HTTP/2 without a length says nothing. */
export function mayBeEmpty(raw: IncomingMessage): boolean {
  const length = raw.headers["content-length"];
  if (length !== undefined) return Number(length) === 0;
  return raw.httpVersionMajor >= 2 || raw.headers["transfer-encoding"] === undefined;
}

/** The HTTP/2 stream below a request of the compatibility layer. */
function streamOf(raw: IncomingMessage): Http2ServerRequest["stream"] {
  // Both protocols come through one handler typed for HTTP/1; only HTTP/2 requests get here.
  return (raw as unknown as Http2ServerRequest).stream;
}

/**
 * Ends a request that was never sent to its end, when the server stops: over HTTP/2 it is reset as
 * never begun, so that its session can end and the client may repeat it elsewhere. Over HTTP/1 the
 * connection ends, which is the listener's business.
 */
export function giveUpReceiving(exchange: Exchange): void {
  if (!exchange.isHttp2) return;
  // Closing may look to the body's reader like the end of the request.
  exchange.abandon();
  streamOf(exchange.raw).close(constants.NGHTTP2_REFUSED_STREAM);
}

function refuseLarge(exchange: Exchange, limitBytes: number): void {
  const raw = exchange.raw;
  const detail = `the body is larger than ${limitBytes} bytes`;
  exchange.refuseBody(413, "body-too-large", detail, (close) => {
    if (exchange.isHttp2) {
      close();
      streamOf(raw).close(constants.NGHTTP2_NO_ERROR);
      return;
    }
    const timer = setTimeout(close, HTTP_LINGER_MS);
    raw.once("close", () => clearTimeout(timer));
    raw.once("end", close);
    raw.resume();
  });
}

class Body {
  private readonly exchange: Exchange;
  private readonly limitBytes: number;
  private readonly done: (body: Buffer) => void;
  private first: Buffer | null = null;
  private rest: Buffer[] | null = null;
  private size = 0;
  private open = true;
  private timer: NodeJS.Timeout | null = null;

  constructor(exchange: Exchange, limitBytes: number, done: (body: Buffer) => void) {
    this.exchange = exchange;
    this.limitBytes = limitBytes;
    this.done = done;
    const raw = exchange.raw;
    raw.on("data", (chunk: Buffer) => this.add(chunk));
    raw.on("end", () => this.complete());
    raw.on("close", () => this.stop());
    raw.on("error", () => this.stop());
  }

  /** Bounds the time of the whole body. HTTP/1 connections are bounded by their server. */
  limitTime(timeoutMs: number): void {
    this.timer = setTimeout(() => {
      if (!this.open) return;
      this.open = false;
      this.exchange.problem(408, "request-timeout", "the body did not arrive in time");
      streamOf(this.exchange.raw).close(constants.NGHTTP2_CANCEL);
    }, timeoutMs);
  }

  private add(chunk: Buffer): void {
    if (!this.open) return;
    this.size += chunk.length;
    if (this.size > this.limitBytes) {
      this.close();
      this.first = this.rest = null;
      refuseLarge(this.exchange, this.limitBytes);
    } else if (this.first === null) this.first = chunk;
    else (this.rest ??= [this.first]).push(chunk);
  }

  private complete(): void {
    if (!this.open) return;
    this.close();
    if (this.exchange.hasEnded) return;
    const body = this.rest === null ? (this.first ?? EMPTY) : Buffer.concat(this.rest, this.size);
    this.done(body);
  }

  private stop(): void {
    if (!this.open) return;
    this.close();
    this.exchange.abandon();
  }

  private close(): void {
    this.open = false;
    if (this.timer !== null) clearTimeout(this.timer);
  }
}

/**
 * Reads the body of `exchange` and calls `done` with it. `timeoutMs` bounds HTTP/2 bodies, which no
 * server timeout covers.
 */
export function readBody(
  exchange: Exchange,
  limitBytes: number,
  timeoutMs: number,
  done: (body: Buffer) => void,
): void {
  const length = exchange.raw.headers["content-length"];
  if (length !== undefined && Number(length) > limitBytes) {
    refuseLarge(exchange, limitBytes);
    return;
  }
  const body = new Body(exchange, limitBytes, done);
  if (exchange.isHttp2) body.limitTime(timeoutMs);
}
