/**
 * Header fields of requests: what one means is found out once, when it enters a table, so that a
 * call costs a look at each of its fields.
 *
 * Invariants: 1. A field that HTTP/2 forbids is flawed, whatever stands in it. 2. Of a field that
 * comes twice the first counts, except where the protocol forbids it.
 */
import { REQUEST_ID_MAX_CHARACTERS } from "../../base/limits.js";

/** What a field adds to the size of a header list beside its text (RFC 9113 6.5.2). */
const FIELD_OVERHEAD_BYTES = 32;
const TIMEOUT = /^([0-9]{1,8})([HMSmun])$/;
const UNIT_MS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1000,
  m: 1,
  u: 0.001,
  n: 0.000_001,
};
const GRPC_TYPE = /^application\/grpc(?:$|[+;])/;
const NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
/** Control characters and spaces at the ends. */
const FORBIDDEN_VALUE = /[\0\n\r]|^[ \t]|[ \t]$/;
const HOPS = /^[0-9]{1,9}$/;
const VISIBLE_ASCII = /^[\x21-\x7e]+$/;

type Kind =
  | "other"
  | "method"
  | "path"
  | "scheme"
  | "authority"
  | "content-type"
  | "content-length"
  | "timeout"
  | "encoding"
  | "authorization"
  | "hops"
  | "request-id"
  | "traceparent"
  | "forbidden";

const KINDS = new Map<string, Kind>([
  [":method", "method"],
  [":path", "path"],
  [":scheme", "scheme"],
  [":authority", "authority"],
  ["content-type", "content-type"],
  ["content-length", "content-length"],
  ["grpc-timeout", "timeout"],
  ["grpc-encoding", "encoding"],
  ["authorization", "authorization"],
  ["svc-forwarded", "hops"],
  ["x-request-id", "request-id"],
  ["traceparent", "traceparent"],
  ["connection", "forbidden"],
  ["keep-alive", "forbidden"],
  ["proxy-connection", "forbidden"],
  ["transfer-encoding", "forbidden"],
  ["upgrade", "forbidden"],
]);

/** The deadline that a grpc-timeout states (ms); NaN when it is malformed. */
function timeoutMs(value: string): number {
  const match = TIMEOUT.exec(value);
  if (match === null) return Number.NaN;
  return Number(match[1]) * (UNIT_MS[match[2] ?? ""] ?? Number.NaN);
}

export class Field {
  readonly kind: Kind;
  readonly sizeBytes: number;
  readonly isPseudo: boolean;
  /** HTTP/2 permits it in no request. */
  readonly isFlawed: boolean;
  /** What the value says, for kinds that are numbers or a yes (1) or no (0). */
  readonly number: number;

  constructor(
    readonly name: string,
    readonly value: string,
  ) {
    const kind = KINDS.get(name) ?? "other";
    this.kind = kind;
    this.sizeBytes = name.length + value.length + FIELD_OVERHEAD_BYTES;
    this.isPseudo = name.startsWith(":");
    const isKnown = this.isPseudo ? kind !== "other" : NAME.test(name);
    const isOtherTe = name === "te" && value !== "trailers";
    this.isFlawed = !isKnown || kind === "forbidden" || isOtherTe || FORBIDDEN_VALUE.test(value);
    this.number = Field.numberOf(kind, value);
  }

  private static numberOf(kind: Kind, value: string): number {
    switch (kind) {
      case "method":
        return value === "POST" ? 1 : 0;
      case "content-type":
        return GRPC_TYPE.test(value) ? 1 : 0;
      case "content-length":
        return /^[0-9]{1,15}$/.test(value) ? Number(value) : Number.NaN;
      case "timeout":
        return timeoutMs(value);
      case "hops":
        return HOPS.test(value) ? Number(value) : 0;
      case "request-id":
        return value.length <= REQUEST_ID_MAX_CHARACTERS && VISIBLE_ASCII.test(value) ? 1 : 0;
      default:
        return 0;
    }
  }
}

/** What the server wants to know of the header fields of one request. */
export class RequestHead {
  path: Field | null = null;
  method: Field | null = null;
  contentType: Field | null = null;
  authorization: Field | null = null;
  timeoutMs = Infinity;
  encoding = "identity";
  /** Hops of a request that another node sent on. */
  forwardHops = 0;
  /** The caller's own; null when it sent none that can be used. */
  requestId: string | null = null;
  /** As the caller sent it, whatever it says. */
  traceparent: string | null = null;
  /** -1: not stated. */
  contentLength = -1;
  /** Size of all fields as the protocol counts it. */
  sizeBytes = 0;
  private hasScheme = false;
  private hasAuthority = false;
  private hasRegular = false;
  private hasTimeout = false;
  private hasHops = false;
  private isFlawed = false;

  /** Not what HTTP/2 permits: the stream is to be reset. */
  get isMalformed(): boolean {
    return this.isFlawed || this.method === null || this.path === null || !this.hasScheme;
  }

  get isGrpc(): boolean {
    return this.contentType?.number === 1;
  }

  take(field: Field): void {
    this.sizeBytes += field.sizeBytes;
    if (field.isFlawed || (field.isPseudo && this.hasRegular)) this.isFlawed = true;
    if (!field.isPseudo) this.hasRegular = true;
    switch (field.kind) {
      case "method":
        if (this.method !== null) this.isFlawed = true;
        this.method = field;
        return;
      case "path":
        if (this.path !== null || field.value === "") this.isFlawed = true;
        this.path = field;
        return;
      case "scheme":
        if (this.hasScheme) this.isFlawed = true;
        this.hasScheme = true;
        return;
      case "authority":
        if (this.hasAuthority) this.isFlawed = true;
        this.hasAuthority = true;
        return;
      case "content-length":
        if (Number.isNaN(field.number)) this.isFlawed = true;
        if (this.contentLength >= 0 && this.contentLength !== field.number) this.isFlawed = true;
        this.contentLength = field.number;
        return;
      default:
        this.takeMeaning(field);
    }
  }

  private takeMeaning(field: Field): void {
    switch (field.kind) {
      case "content-type":
        this.contentType ??= field;
        return;
      case "timeout":
        if (!this.hasTimeout) this.timeoutMs = field.number;
        this.hasTimeout = true;
        return;
      case "encoding":
        this.encoding = field.value;
        return;
      case "authorization":
        this.authorization ??= field;
        return;
      case "hops":
        if (!this.hasHops) this.forwardHops = field.number;
        this.hasHops = true;
        return;
      case "request-id":
        if (field.number === 1) this.requestId ??= field.value;
        return;
      case "traceparent":
        this.traceparent ??= field.value;
        return;
      default:
    }
  }
}

/** The fields of a block of trailers: there are none that anybody reads. */
export class TrailingFields {
  isMalformed = false;

  take(field: Field): void {
    if (field.isFlawed || field.isPseudo) this.isMalformed = true;
  }
}

/** What takes the fields of a header block, in order. */
export interface FieldSink {
  take(field: Field): void;
}
