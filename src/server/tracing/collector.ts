/**
 * A collector of spans somewhere in the network: OTLP over HTTP, in JSON.
 *
 * Owns the one connection to it. Invariants: 1. A document has TRACE_EVERY_MS to be taken,
 * connecting included. 2. A name is looked up as those of peers are: never in a thread that the log
 * needs (P-129). 3. Of an answer nothing is kept but its status.
 */
import { Agent as HttpAgent, type ClientRequest, request as httpRequest } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import type { LookupFunction } from "node:net";
import { TRACE_EVERY_MS } from "../../base/limits.js";
import { NameResolver, lookupBy } from "../../net/resolve.js";
import type { TimerPort } from "../../ports.js";
import type { CollectorPort, Posted } from "./exporter.js";

const DEFAULT_PATH = "/v1/traces";
/** It has no room now; what was sent was no mistake (OTLP 1.x, "Retryable Response Codes"). */
const RETRYABLE = new Set([429, 502, 503, 504]);

/** `endpoint` without a path: where the protocol has it by default. */
export function collectorUrl(endpoint: string): URL {
  const url = new URL(endpoint);
  if (url.pathname === "/") url.pathname = DEFAULT_PATH;
  return url;
}

function endOf(status: number): Posted {
  if (status >= 200 && status < 300) return "taken";
  return RETRYABLE.has(status) ? "failed" : "refused";
}

export class HttpCollector implements CollectorPort {
  private readonly agent: HttpAgent | HttpsAgent;
  private readonly lookup: LookupFunction;
  private open: ClientRequest | null = null;

  constructor(
    private readonly url: URL,
    private readonly timers: TimerPort,
  ) {
    const options = { keepAlive: true, maxSockets: 1 };
    const isSecure = this.url.protocol === "https:";
    this.agent = isSecure ? new HttpsAgent(options) : new HttpAgent(options);
    const names = new NameResolver(timers);
    this.lookup = lookupBy((host, found) => names.find(host, TRACE_EVERY_MS, null, found));
  }

  post(document: string, done: (end: Posted, why: string) => void): void {
    const { url, agent, lookup } = this;
    const body = Buffer.from(document);
    const headers = { "content-type": "application/json", "content-length": body.length };
    const send = url.protocol === "https:" ? httpsRequest : httpRequest;
    let hasEnded = false;
    const end = (how: Posted, why: string): void => {
      if (hasEnded) return;
      hasEnded = true;
      timer.cancel();
      this.open = null;
      done(how, why);
    };
    const sent = send(url, { method: "POST", headers, agent, lookup }, (response) => {
      const { statusCode = 0 } = response;
      response.resume();
      response.once("error", () => undefined);
      response.once("end", () => end(endOf(statusCode), `status ${statusCode}`));
      response.once("close", () => end("failed", "the answer broke off"));
    });
    this.open = sent;
    const timer = this.timers.after(TRACE_EVERY_MS, () => {
      sent.destroy();
      end("failed", "no answer in time");
    });
    sent.on("error", (error: Error) => end("failed", error.message));
    sent.end(body);
  }

  close(): void {
    this.open?.destroy();
    this.agent.destroy();
  }
}
