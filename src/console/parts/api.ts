/**
 * Calls of the REST API of the node that served this page, with the caller's token.
 *
 * Invariants: 1. The token is in memory, and in the storage of the tab only if its owner asked for
 * that. 2. No other origin is called. 3. Every call ends, within its bound. 4. Numbers are exact.
 */
import { parseExactly } from "./exact-json.js";

const CALL_MAX_MS = 10_000;
const KEPT = "svc-token";

/** An answer that is no success; `status` 0: there was none. */
export class CallError extends Error {
  constructor(
    readonly status: number,
    message: string,
    /** The role that the caller lacks. */
    readonly neededRole: string | null,
    /** Members of the answer. */
    readonly body: unknown,
  ) {
    super(message);
  }
}

interface Problem {
  readonly detail?: string;
  readonly title?: string;
}

function problemOf(status: number, text: string): CallError {
  let body: Problem = {};
  try {
    body = parseExactly(text) as Problem;
  } catch {
    // Whoever answered is no svc: a proxy, most likely.
  }
  const message = body.detail ?? body.title ?? `status ${status}`;
  const role = status === 403 ? (/needs the role (\w+)/.exec(message)?.[1] ?? null) : null;
  return new CallError(status, message, role, body);
}

export class Api {
  private token: string | null = sessionStorage.getItem(KEPT);
  /** The node wants to know who calls. */
  whenUnknown: () => void = () => undefined;

  get hasToken(): boolean {
    return this.token !== null;
  }

  signIn(token: string, isKept: boolean): void {
    this.token = token;
    if (isKept) sessionStorage.setItem(KEPT, token);
    else sessionStorage.removeItem(KEPT);
  }

  signOut(): void {
    this.token = null;
    sessionStorage.removeItem(KEPT);
  }

  get<T>(path: string): Promise<T> {
    return this.json<T>("GET", path, null, CALL_MAX_MS);
  }

  post<T>(path: string, body: object | null, boundMs = CALL_MAX_MS): Promise<T> {
    return this.json<T>("POST", path, body, boundMs);
  }

  /** A body that is no JSON. */
  text(path: string): Promise<string> {
    return this.call("GET", path, null, CALL_MAX_MS);
  }

  private async json<T>(
    method: string,
    path: string,
    body: object | null,
    boundMs: number,
  ): Promise<T> {
    return parseExactly(await this.call(method, path, body, boundMs)) as T;
  }

  private async call(
    method: string,
    path: string,
    body: object | null,
    boundMs: number,
  ): Promise<string> {
    const headers: Record<string, string> = {};
    const { token } = this;
    if (token !== null) headers["authorization"] = `Bearer ${token}`;
    if (body !== null) headers["content-type"] = "application/json";
    let status = 0;
    let text: string;
    try {
      const answer = await fetch(path, {
        method,
        headers,
        body: body === null ? null : JSON.stringify(body),
        cache: "no-store",
        redirect: "error",
        signal: AbortSignal.timeout(boundMs),
      });
      status = answer.status;
      text = await answer.text();
    } catch {
      throw new CallError(0, "the node does not answer", null, null);
    }
    if (status === 200) return text;
    // Whoever has signed in since then is not asked again for what went out before.
    if (status === 401 && token === this.token) this.whenUnknown();
    throw problemOf(status, text);
  }
}
