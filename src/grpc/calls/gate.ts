/**
 * The gate that every call passes before its body is read, and the routes behind it.
 *
 * Owns the table of routes. Invariants: 1. A caller's credentials are checked before the body is
 * read. 2. A path that is not listed needs no role: it does not exist.
 */
import type { AuditPort } from "../../operations/api/audit.js";
import { allows, type Authenticator } from "../h2/access.js";
import type { CallObserver } from "./call-observer.js";
import type { CallDesk, CallerOf, Route } from "../h2/call.js";
import { Status, statusName } from "../h2/constants.js";
import { type Failure, failureOf } from "../h2/failure.js";
import type { RequestHead } from "../h2/fields.js";

export interface GateOptions {
  readonly authenticator: Authenticator | null;
  /** Told of refusals for who called; null = nobody is. */
  readonly audit: AuditPort | null;
  /** Told of every call, for metrics; null = nobody is. */
  readonly observer: CallObserver | null;
  readonly maxReceiveBytes: number;
  readonly clock: { monotonicMs(): number };
}

const UNAUTHENTICATED = failureOf(Status.UNAUTHENTICATED, "valid credentials are needed");
const DENIED = failureOf(
  Status.PERMISSION_DENIED,
  "the role of the caller does not allow this call",
);

export class Gate implements CallDesk {
  readonly messageMaxBytes: number;
  private readonly routes = new Map<string, Route>();
  /** Open calls without a bound. */
  private longCalls = 0;

  constructor(private readonly options: GateOptions) {
    this.messageMaxBytes = options.maxReceiveBytes;
  }

  add(route: Route): void {
    this.routes.set(route.path, route);
  }

  nowMs(): number {
    return this.options.clock.monotonicMs();
  }

  route(path: string): Route | null {
    return this.routes.get(path) ?? null;
  }

  gate(route: Route, head: RequestHead, socket: unknown, address: string): CallerOf | Failure {
    const { authenticator, audit } = this.options;
    if (authenticator === null || route.role === null) {
      return { role: "admin", name: "anonymous", address, limited: { name: address, rate: null } };
    }
    const known = authenticator.authenticate(head.authorization?.value, socket);
    if (known !== null && allows(known.role, route.role)) {
      const { role, name, rate = null } = known;
      return { role, name, address, limited: { name, actor: name, rate } };
    }
    audit?.denied({
      operation: route.path,
      caller: known?.name ?? "",
      role: known?.role ?? "",
      address,
      requestId: head.requestId ?? "",
      outcome: known === null ? "UNAUTHENTICATED" : "PERMISSION_DENIED",
    });
    if (known !== null) return DENIED;
    this.options.observer?.unauthenticated(isSecure(socket));
    return UNAUTHENTICATED;
  }

  stillAllows(route: Route, head: RequestHead, socket: unknown): boolean {
    const { authenticator } = this.options;
    if (authenticator === null || route.role === null) return true;
    const known = authenticator.authenticate(head.authorization?.value, socket);
    return known !== null && allows(known.role, route.role);
  }

  begun({ boundMs }: Route): void {
    if (boundMs === null) this.options.observer?.streams(++this.longCalls);
  }

  ended({ path, boundMs }: Route, code: number): void {
    const { observer } = this.options;
    if (observer === null) return;
    if (boundMs === null) observer.streams(--this.longCalls);
    observer.ended(path, statusName(code));
  }

  refused(route: Route | null, code: number): void {
    // Paths that do not exist are no names of methods.
    this.options.observer?.ended(route?.path ?? "", statusName(code));
  }
}

function isSecure(socket: unknown): boolean {
  return typeof socket === "object" && socket !== null && Reflect.get(socket, "encrypted") === true;
}
