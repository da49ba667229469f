/** Tracing as the flags have it: what records, and where it goes to. */
import { randomBytes } from "node:crypto";
import { VERSION } from "../../base/generated/version.js";
import type { LoggerPort } from "../../ports.js";
import { systemClock, systemTimers } from "../../sys.js";
import type { ServerConfig } from "../flags/server-config.js";
import { HttpCollector, collectorUrl } from "./collector.js";
import { SpanExporter } from "./exporter.js";
import { Tracer } from "./tracer.js";

const SPAN_ID_BYTES = 8;
/** Drawn at once: a draw costs far more than its bytes. */
const POOL_BYTES = 512 * SPAN_ID_BYTES;

/** Null where no collector was named: nothing is recorded. */
export function openTraces(
  { traceEndpoint, nodeId, nodeName }: ServerConfig,
  logger: LoggerPort,
): SpanExporter | null {
  if (traceEndpoint === null) return null;
  const resource = {
    "service.name": "svc",
    "service.version": VERSION,
    "service.instance.id": nodeName,
    "svc.node_id": nodeId,
  };
  const collector = new HttpCollector(collectorUrl(traceEndpoint), systemTimers);
  return new SpanExporter(collector, resource, systemTimers, logger);
}

export function tracerInto(exporter: SpanExporter): Tracer {
  let pool = "";
  let at = 0;
  const spanId = (): string => {
    if (at >= pool.length) {
      pool = randomBytes(POOL_BYTES).toString("hex");
      at = 0;
    }
    return pool.slice(at, (at += 2 * SPAN_ID_BYTES));
  };
  return new Tracer({ clock: systemClock, spanId }, exporter);
}
