/**
 * The endpoints of a client: the configured ones, and those that hints named.
 *
 * Owns their transports. Invariants: 1. Learned endpoints never replace configured ones: whatever
 * is not hinted goes to those. 2. An endpoint is learned only with the scheme of the endpoint that
 * named it: nothing leaves in clear text that was configured over TLS. With a token an endpoint in
 * clear text is learned only on a host that was configured: who names others may be anybody. 3. A
 * target that failed is left alone for a growing while when there is another.
 */
import { parseEndpoint, type Endpoint } from "../values/options.js";
import type { ClientPlatform } from "../time/platform.js";
import type { Target, TransportNode } from "./try.js";

const COOLING_FIRST_MS = 10;
const COOLING_LAST_MS = 1000;
const FAILURES_MAX = 16;
/** Learned endpoints: far beyond the voters of a cluster. */
const LEARNED_MAX = 64;
const NAMES_MAX = 1024;

export class Targets {
  readonly configured: readonly Target[];
  private readonly platform: ClientPlatform;
  private readonly learned = new Map<string, Target>();
  private readonly names = new Map<string, Target | null>();
  private readonly make: (endpoint: Endpoint, failed: () => void) => TransportNode;
  private readonly learnsEndpoints: boolean;
  /** Hosts to which a token may go in clear text; null = there is no token. */
  private readonly trusted: ReadonlySet<string> | null;
  private preferred: number;

  /**
   * `learnsEndpoints`: whether endpoints in clear text may be learned by this transport; `start`:
   * where among the configured ones to begin, from 0 (the first) to below 1; `hasToken`: requests
   * carry one.
   */
  constructor(
    platform: ClientPlatform,
    endpoints: readonly Endpoint[],
    make: (endpoint: Endpoint, failed: () => void) => TransportNode,
    learnsEndpoints: boolean,
    start: number,
    hasToken: boolean,
  ) {
    this.platform = platform;
    this.make = make;
    this.trusted = hasToken ? new Set(endpoints.map(({ host }) => host.toLowerCase())) : null;
    this.learnsEndpoints = learnsEndpoints;
    this.configured = endpoints.map((endpoint) => this.target(endpoint, true));
    this.preferred = Math.floor(start * endpoints.length);
  }

  private target(endpoint: Endpoint, configured: boolean): Target {
    const node = this.make(endpoint, () => this.failed(target));
    const target: Target = {
      endpoint,
      node,
      configured,
      failures: 0,
      coolUntilMs: 0,
      hinted: false,
      name: null,
      many: false,
    };
    return target;
  }

  /** How many there are. */
  get count(): number {
    return this.configured.length + this.learned.size;
  }

  /**
   * The configured target for a try: the preferred one, the one after `last`, or `last` again to
   * `stay`. Cooling ones only when all are.
   */
  next(last: Target | null, stay: boolean, nowMs: number): Target {
    const { configured } = this;
    if (configured.length === 1) return configured[0] as Target;
    const at = last === null ? -1 : configured.indexOf(last);
    const first = at < 0 ? this.preferred : stay ? at : at + 1;
    let best = configured[first % configured.length] as Target;
    for (let step = 0; step < configured.length; step++) {
      const target = configured[(first + step) % configured.length] as Target;
      if (target.coolUntilMs <= nowMs) return target;
      if (target.coolUntilMs < best.coolUntilMs) best = target;
    }
    return best;
  }

  worked(target: Target): void {
    if (target.failures === 0) return;
    target.failures = 0;
    target.coolUntilMs = 0;
  }

  /** It cannot be reached, or does not answer. What fails together counts once. */
  failed(target: Target): void {
    const nowMs = this.platform.nowMs();
    const { configured } = this;
    if (configured[this.preferred] === target) {
      this.preferred = (this.preferred + 1) % configured.length;
    }
    if (target.coolUntilMs > nowMs) return;
    const ceilingMs = Math.min(COOLING_LAST_MS, COOLING_FIRST_MS * 2 ** target.failures);
    target.failures = Math.min(target.failures + 1, FAILURES_MAX);
    target.coolUntilMs = nowMs + ceilingMs * (0.5 + this.platform.random() / 2);
  }

  /** The target of the node that executed a request sent to `from` and calls itself `name`. */
  executed(from: Target, name: string): Target | null {
    if (from.name === name) return from;
    if (name === "") return from.many ? null : from;
    if (!from.many && from.name === null) {
      from.name = name;
      if (this.names.get(name)?.configured !== true) this.remember(name, from);
      return from;
    }
    this.balanced(from);
    return this.named(name, from);
  }

  /** The target to which `from` forwarded a request. */
  forwarded(from: Target, name: string): Target | null {
    if (name === "") return null;
    // One node does not forward to itself.
    if (from.name === name) this.balanced(from);
    return this.named(name, from);
  }

  /** The target of the node that calls itself `name`, said by `from`; null = not to be used. */
  named(name: string, from: Target): Target | null {
    const known = this.names.get(name);
    if (known !== undefined) return known;
    const target = this.resolve(name, from);
    this.remember(name, target);
    return target;
  }

  private resolve(name: string, from: Target): Target | null {
    let endpoint: Endpoint;
    try {
      endpoint = parseEndpoint(name);
    } catch {
      return null;
    }
    const { url, secure, host } = endpoint;
    const configured = this.configured.find((target) => target.endpoint.url === url);
    if (configured !== undefined) return configured.many ? null : configured;
    if (secure !== from.endpoint.secure || (!secure && !this.learnsEndpoints)) return null;
    if (!secure && this.trusted?.has(host.toLowerCase()) === false) return null;
    const learned = this.learned.get(url) ?? this.target(endpoint, false);
    if (!this.learned.has(url)) {
      if (this.learned.size >= LEARNED_MAX && !this.dropIdle()) return null;
      this.learned.set(url, learned);
    }
    return learned;
  }

  private remember(name: string, target: Target | null): void {
    if (this.names.size >= NAMES_MAX) this.names.clear();
    this.names.set(name, target);
  }

  private balanced(target: Target): void {
    target.many = true;
    target.name = null;
    for (const [name, named] of this.names) if (named === target) this.names.delete(name);
  }

  /** Ends a learned endpoint without a connection; false when all have one. */
  private dropIdle(): boolean {
    for (const [url, target] of this.learned) {
      if (target.node.ready) continue;
      this.learned.delete(url);
      for (const [name, named] of this.names) if (named === target) this.names.delete(name);
      void target.node.close();
      return true;
    }
    return false;
  }

  /** Ends all transports; never rejects. */
  async close(): Promise<void> {
    const all = [...this.configured, ...this.learned.values()];
    await Promise.all(all.map(({ node }) => node.close()));
  }
}
