/**
 * Where a named peer may be: the one place in which this room turns names into addresses.
 *
 * A name is asked for by c-ares over sockets of the loop, never by the platform's own look-up: that
 * one waits in a thread of the pool, and the log needs those threads.
 * Invariants: 1. One look-up of a name is on its way at a time; whoever wants it meanwhile joins.
 * 2. Nobody waits longer than the own patience, and each gets its answer once, in a later turn. 3.
 * No answer is no end: the last address that worked and the one the peer itself comes from are
 * tried then; who is there, the handshake proves. 4. What is remembered is bounded.
 */
import { Resolver } from "node:dns";
import { readFileSync, statSync } from "node:fs";
import { type LookupFunction, isIP } from "node:net";
import type { TimerHandle, TimerPort } from "../ports.js";

export interface NameSettings {
  /** `address:port` of the servers to ask; null = those of the system. */
  readonly servers: readonly string[] | null;
  /** Read before anybody is asked. */
  readonly hostsPath: string;
}

const SYSTEM_NAMES: NameSettings = { servers: null, hostsPath: "/etc/hosts" };

/** Until a question is sent again; each further time takes twice as long (ms). */
const QUERY_TIMEOUT_MS = 400;
/** Questions of one look-up to each server. */
const QUERY_TRIES = 3;
/** Longest wait of one who asks: two questions (ms). */
export const LOOKUP_PATIENCE_MS = 800;
/** A look-up that nobody waits for any more still serves the next one: so long it lives (ms). */
const LOOKUP_LIFE_MS = 3000;
/** Addresses of one family wait so long for those of the other (ms). */
const OTHER_FAMILY_MS = 50;
const NAMES_MAX = 8192;
const ADDRESSES_MAX = 16;
const HOSTS_FILE_MAX_BYTES = 1024 * 1024;
/** As RFC 6761 has it, whatever the hosts file says. */
const LOCALHOST: readonly string[] = ["127.0.0.1", "::1"];

type Answered = (fresh: readonly string[]) => void;

/** What is known of one name. */
interface Name {
  /** Last answer to a question, however old. */
  answer: readonly string[];
  /** Address at which the right peer was last met. */
  worked: string | null;
  /** Those who wait for the look-up on its way; null when there is none. */
  waiting: Set<Answered> | null;
  /** The look-up on its way was counted as one that failed. */
  isCounted: boolean;
}

/** Addresses by name, of the lines of a hosts file. */
function parseHosts(text: string): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const line of text.split("\n")) {
    const [address, ...names] = (line.split("#")[0] as string).trim().split(/\s+/);
    if (address === undefined || isIP(address) === 0) continue;
    for (const name of names) {
      const key = name.toLowerCase();
      const known = found.get(key);
      if (known === undefined) found.set(key, [address]);
      else if (known.length < ADDRESSES_MAX) known.push(address);
    }
  }
  return found;
}

/** An IPv4 address that an IPv6 socket shows, as what it is. */
export function plainAddress(address: string): string {
  return address.startsWith("::ffff:") && address.includes(".") ? address.slice(7) : address;
}

export class NameResolver {
  private readonly names = new Map<string, Name>();
  private hosts = new Map<string, string[]>();
  private hostsVersion = "";
  private failed = 0;

  constructor(
    private readonly timer: TimerPort,
    private readonly settings: NameSettings = SYSTEM_NAMES,
  ) {}

  /** Look-ups without an answer in time. */
  get failures(): number {
    return this.failed;
  }

  /**
   * Gives `done` the addresses at which `host` may be, the likeliest first, within `withinMs`.
   * `source`: the address that the peer itself comes from. None: nothing is known.
   */
  find(
    host: string,
    withinMs: number,
    source: string | null,
    done: (addresses: readonly string[]) => void,
  ): void {
    const key = host.toLowerCase();
    const own = this.ownAnswer(key);
    if (own !== null) return this.timer.soon(() => done(own));
    const name = this.nameOf(key);
    let timer: TimerHandle | null = null;
    const answered: Answered = (fresh) => {
      timer?.cancel();
      const all = [...fresh, name.worked, source, ...name.answer];
      done([...new Set(all.filter((address) => address !== null))].slice(0, ADDRESSES_MAX));
    };
    timer = this.timer.after(Math.min(withinMs, LOOKUP_PATIENCE_MS), () => {
      name.waiting?.delete(answered);
      this.countFailure(name);
      answered([]);
    });
    if (name.waiting === null) this.ask(key, name);
    name.waiting?.add(answered);
  }

  /** The peer that was meant was met at `address`. */
  worked(host: string, address: string): void {
    if (isIP(host) === 0) this.nameOf(host.toLowerCase()).worked = plainAddress(address);
  }

  /** What needs no question: a literal, the machine itself, the hosts file. */
  private ownAnswer(key: string): readonly string[] | null {
    if (isIP(key) !== 0) return [key];
    this.readHosts();
    return this.hosts.get(key) ?? (key === "localhost" ? LOCALHOST : null);
  }

  private readHosts(): void {
    // Read in this turn: it is small, seldom changed, and a thread of the pool is what is spared.
    const { hostsPath } = this.settings;
    try {
      const { mtimeMs, size, ino } = statSync(hostsPath);
      const version = `${mtimeMs} ${size} ${ino}`;
      if (version === this.hostsVersion || size > HOSTS_FILE_MAX_BYTES) return;
      this.hosts = parseHosts(readFileSync(hostsPath, "utf8"));
      this.hostsVersion = version;
    } catch {
      this.hosts = new Map();
      this.hostsVersion = "";
    }
  }

  private nameOf(key: string): Name {
    let name = this.names.get(key);
    if (name === undefined) {
      name = { answer: [], worked: null, waiting: null, isCounted: false };
      if (this.names.size >= NAMES_MAX) {
        const [oldest] = this.names.keys();
        if (oldest !== undefined) this.names.delete(oldest);
      }
      this.names.set(key, name);
    }
    return name;
  }

  private countFailure(name: Name): void {
    if (name.isCounted) return;
    name.isCounted = true;
    this.failed += 1;
  }

  /** Sends the questions for both families; whoever waits is answered when the look-up ends. */
  private ask(key: string, name: Name): void {
    const { servers } = this.settings;
    const resolver = new Resolver({ timeout: QUERY_TIMEOUT_MS, tries: QUERY_TRIES });
    if (servers !== null) resolver.setServers(servers);
    const waiting = new Set<Answered>();
    const found: string[] = [];
    let open = 2;
    name.waiting = waiting;
    name.isCounted = false;
    const end = (): void => {
      if (name.waiting !== waiting) return;
      name.waiting = null;
      timer.cancel();
      resolver.cancel();
      const fresh = found.slice(0, ADDRESSES_MAX);
      if (fresh.length > 0) name.answer = fresh;
      else this.countFailure(name);
      for (const answered of waiting) answered(fresh);
    };
    let timer = this.timer.after(LOOKUP_LIFE_MS, end);
    const take = (error: Error | null, addresses: readonly string[] | undefined): void => {
      open -= 1;
      if (error === null) found.push(...(addresses ?? []));
      if (open === 0) return end();
      if (found.length === 0) return;
      timer.cancel();
      timer = this.timer.after(OTHER_FAMILY_MS, end);
    };
    resolver.resolve4(key, take);
    resolver.resolve6(key, take);
  }
}

/** Answers the platform's question for the address of a host by what `find` says, the first first. */
export function lookupBy(
  find: (host: string, found: (addresses: readonly string[]) => void) => void,
): LookupFunction {
  return (host, options, done) => {
    find(host, (addresses) => {
      const found = addresses.map((address) => ({ address, family: isIP(address) }));
      const [first] = found;
      if (first === undefined) done(new Error(`no address is known for ${host}`), []);
      else if (options.all === true) done(null, found);
      else done(null, first.address, first.family);
    });
  };
}
