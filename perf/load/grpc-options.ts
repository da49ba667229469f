/**
 * The options of the gRPC load driver, read from the command line.
 *
 * Owns no state.
 */
import { parseArgs } from "node:util";
import { ETCD_KINDS, type EtcdKind } from "./etcd-items.js";
import { KINDS, type Kind } from "./grpc-items.js";
import type { HeaderFields } from "./lean-http2.js";

export interface Address {
  readonly host: string;
  readonly port: number;
}

export interface Options extends Address {
  /** Where the connections go, one after the other; the first is `host` and `port`. */
  readonly addresses: readonly Address[];
  readonly tls: boolean;
  readonly token: string;
  readonly kind: Kind | EtcdKind;
  readonly mode: "stream" | "unary";
  readonly inflight: number;
  readonly frame: number;
  readonly connections: number;
  readonly objects: number;
  readonly valueBytes: number;
  readonly prefix: string;
  /** How long a slot holds the lock of a hand-off before it lets go of it. */
  readonly holdMs: number;
  readonly seconds: number;
  /** Ends the load before its time when so many were answered; 0: never. */
  readonly operations: number;
  readonly warmupSeconds: number;
}

/** Of "host:port,host:port". */
export function addressesOf(text: string): readonly Address[] {
  return text.split(",").map((each) => {
    const at = each.lastIndexOf(":");
    return { host: each.slice(0, at), port: Number(each.slice(at + 1)) };
  });
}

/** The header fields of a call. */
export function headersFor(
  { host, port, tls, token }: Pick<Options, "host" | "port" | "tls" | "token">,
  path: string,
): HeaderFields {
  return {
    ":method": "POST",
    ":scheme": tls ? "https" : "http",
    ":path": path,
    ":authority": `${host}:${port}`,
    "content-type": "application/grpc",
    te: "trailers",
    ...(token === "" ? {} : { authorization: `Bearer ${token}` }),
  };
}

/** Reads the command line; throws with a sentence when it cannot be meant. */
export function options(): Options {
  const text = (fallback: string) => ({ type: "string", default: fallback }) as const;
  const { values } = parseArgs({
    options: {
      address: text("127.0.0.1:8083"),
      tls: { type: "boolean", default: false },
      token: text(""),
      kind: text("next"),
      mode: text("stream"),
      inflight: text("1024"),
      frame: text("128"),
      connections: text("1"),
      objects: text("16"),
      "value-bytes": text("100"),
      prefix: text("perf"),
      "hold-ms": text("0"),
      seconds: text("5"),
      operations: text("0"),
      "warmup-seconds": text("1"),
    },
  });
  const kinds = [...KINDS, ...ETCD_KINDS];
  const kind = kinds.find((one) => one === values.kind);
  const mode = values.mode === "stream" || values.mode === "unary" ? values.mode : undefined;
  if (kind === undefined || mode === undefined) {
    throw new Error(`--kind is one of ${kinds.join(", ")}; --mode is stream or unary`);
  }
  const addresses = addressesOf(values.address);
  const [first] = addresses as [Address];
  return {
    ...first,
    addresses,
    tls: values.tls,
    token: values.token,
    kind,
    mode,
    inflight: Number(values.inflight),
    frame: Number(values.frame),
    connections: Number(values.connections),
    objects: Number(values.objects),
    valueBytes: Number(values["value-bytes"]),
    prefix: values.prefix,
    holdMs: Number(values["hold-ms"]),
    seconds: Number(values.seconds),
    operations: Number(values.operations),
    warmupSeconds: Number(values["warmup-seconds"]),
  };
}
