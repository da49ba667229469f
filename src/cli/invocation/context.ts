/**
 * What an operation runs with: a client for the right endpoints, its deadline, its output.
 *
 * Owns the clients of one process (one per list of endpoints) until `close`. Invariants: 1. The
 * time limit covers the whole operation, however many calls it makes. 2. stdout carries answers
 * only; remarks go to stderr.
 */
import { readFileSync } from "node:fs";
import type { Durability, SvcClient, SvcClientOptions, TlsOptions } from "../../client/mod.js";
import { EXIT_DONE, EXIT_REFUSED, type ExitCode } from "./exit-codes.js";
import { usageError } from "./failures.js";
import type { JsonValue } from "../terminal/format.js";
import { Progress } from "../terminal/progress.js";
import { Reachability } from "./reachability.js";
import { printLine } from "../terminal/screen.js";
import type { Settings } from "./settings.js";
import { visibleText } from "../terminal/text-width.js";
import { readValue, type OptionValues } from "../commands/values.js";

/** Longest time that a call without a limit may take (ms). */
const NO_LIMIT = Number.POSITIVE_INFINITY;

/** What an operation came to, in both forms. */
export interface Outcome {
  readonly exit: ExitCode;
  readonly lines: readonly string[];
  readonly document: JsonValue;
  /** One sentence for stderr: why it was refused. */
  readonly remark: string | null;
  /** It was printed as it came: there is nothing to add. */
  readonly isPrinted?: true;
  /** Colours a line that was made safe, on terminals that show colours. */
  readonly paint?: (line: string) => string;
}

export function outcome(
  isDone: boolean,
  lines: readonly string[],
  document: JsonValue,
  remark: string | null = null,
): Outcome {
  return { exit: isDone ? EXIT_DONE : EXIT_REFUSED, lines, document, remark };
}

export const INVALID_INPUT_REMARK = "InvalidInput: the service does not accept the request as sent";

/** Makes and keeps clients; `token` can be given later, when the service asked for one. */
export class Clients {
  readonly settings: Settings;
  private readonly clients = new Map<string, SvcClient>();
  private typedToken: string | null = null;

  constructor(settings: Settings) {
    this.settings = settings;
  }

  /** A client for these endpoints. Loads the library at the first call. */
  open(endpoints: readonly string[]): Promise<SvcClient> {
    return this.openAs(endpoints, "grpc");
  }

  /** A client that speaks REST to this https endpoint. */
  openRest(endpoint: string): Promise<SvcClient> {
    return this.openAs([endpoint], "rest");
  }

  private async openAs(
    endpoints: readonly string[],
    transport: "grpc" | "rest",
  ): Promise<SvcClient> {
    const name = `${transport} ${endpoints.join(",")}`;
    const { SvcClient } = await import("../../client/mod.js");
    const known = this.clients.get(name);
    if (known !== undefined) return known;
    const client = new SvcClient({ ...this.options(endpoints, 1), transport });
    this.clients.set(name, client);
    return client;
  }

  /** A token that was typed; clients made before are closed. */
  async useToken(token: string): Promise<void> {
    this.typedToken = token;
    await this.close();
  }

  async close(): Promise<void> {
    const all = [...this.clients.values()];
    this.clients.clear();
    await Promise.all(all.map((client) => client.close()));
  }

  /** Options of one more client; `bench` opens several to the same place. */
  options(endpoints: readonly string[], channels: number): SvcClientOptions {
    const token = this.readToken();
    return {
      endpoints: [...endpoints],
      channels,
      // Contract 8.1: in the order given, and a refused connection to the only one ends it.
      startAt: "first",
      failWhenRefused: true,
      // Whoever names one node means that one, not the one that leads.
      ...(this.settings.node === null ? {} : { followRoutes: false }),
      ...(token === null ? {} : { token }),
      tls: this.tls(),
    };
  }

  /**
   * Carries `work` out with signs of life on a terminal. When an endpoint of the settings cannot be
   * reached, that is said there, behind `about`, and in the message of a failure.
   */
  async whileWaiting<Value>(
    limitMs: number | null,
    work: (progress: Progress) => Promise<Value>,
    about = "waiting",
    text = `waiting for ${this.settings.endpoints.join(", ")}`,
  ): Promise<Value> {
    const progress = new Progress(text);
    const found = (reason: string): void => progress.update(`${about}: ${reason}`);
    const tls = (): TlsOptions => this.tls();
    const reachability = new Reachability(this.settings.endpoints, tls, limitMs, found);
    try {
      return await work(progress);
    } catch (error) {
      reachability.explain(error);
      throw error;
    } finally {
      reachability.end();
      progress.end();
    }
  }

  /** How servers are verified, from the settings. */
  tls(): TlsOptions {
    const { insecure, caFile, certFile, keyFile } = this.settings;
    return {
      insecure,
      ...(caFile === null ? {} : { ca: readFile(caFile) }),
      ...(certFile === null ? {} : { cert: readFile(certFile) }),
      ...(keyFile === null ? {} : { key: readFile(keyFile) }),
    };
  }

  private readToken(): string | null {
    if (this.typedToken !== null) return this.typedToken;
    const { tokenFile, token } = this.settings;
    const text = tokenFile === null ? token : readFile(tokenFile).trim();
    if (text === null) return null;
    const read = readValue({ kind: "secret" }, text);
    // Not even a part of it may show in the message.
    if (!read.ok) throw usageError(`${tokenFile ?? "SVC_TOKEN"}: not ${read.message}`);
    return text;
  }
}

function readFile(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw usageError(`cannot read ${path}: ${error instanceof Error ? error.message : ""}`);
  }
}

/** One operation's view of the world. */
export class RunContext {
  readonly clients: Clients;
  readonly endpoints: readonly string[];
  readonly signal: AbortSignal;
  /** True for a line of the shell: stdin is not the operation's. */
  readonly isShell: boolean;
  /** Shows how far the operation is; null where nobody sees that. */
  readonly show: ((text: string) => void) | null;
  private readonly deadlineMs: number;
  private readonly wipe: () => void;

  /**
   * `progress`: what shows on a terminal how far it is, and is taken away before something is
   * printed; null: nothing does.
   */
  constructor(
    clients: Clients,
    signal: AbortSignal,
    limitMs: number | null,
    progress: Progress | null,
    isShell: boolean,
  ) {
    this.clients = clients;
    this.endpoints = clients.settings.endpoints;
    this.signal = signal;
    this.deadlineMs = limitMs === null ? NO_LIMIT : performance.now() + limitMs;
    this.wipe = () => progress?.end();
    this.show = progress?.show ?? null;
    this.isShell = isShell;
  }

  get settings(): Settings {
    return this.clients.settings;
  }

  /** The client for all endpoints. */
  client(): Promise<SvcClient> {
    return this.clients.open(this.endpoints);
  }

  /** A client for one endpoint only. */
  clientOf(endpoint: string): Promise<SvcClient> {
    return this.clients.open([endpoint]);
  }

  /** Columns of the terminal that stdout is now, null when it is none: tables fit themselves. */
  get columns(): number | null {
    return process.stdout.isTTY ? process.stdout.columns : null;
  }

  /** Time left (ms). */
  leftMs(): number {
    return this.deadlineMs === NO_LIMIT
      ? NO_LIMIT
      : Math.max(1, this.deadlineMs - performance.now());
  }

  /**
   * What every call of the library gets. `among`: how many endpoints are still to be asked one
   * after the other; each gets its share of the time, so that a dead one does not use up all of it.
   */
  calling(among = 1): { readonly signal: AbortSignal; readonly deadlineMs: number } {
    return { signal: this.signal, deadlineMs: Math.max(1, this.leftMs() / among) };
  }

  /** Prints one line of a long console answer at once, instead of keeping all of it. */
  line(text: string): void {
    this.wipe();
    printLine(text);
  }

  /** What was waited for is there: nothing shows any more that it is waited for. */
  settled(): void {
    this.wipe();
  }

  /** A remark for the person, beside the answer. */
  note(text: string): void {
    this.wipe();
    process.stderr.write(`note: ${visibleText(text)}\n`);
  }

  /** Bytes of an answer as they are. */
  raw(bytes: Uint8Array): void {
    this.wipe();
    process.stdout.write(bytes);
  }
}

export function durabilityOf(values: OptionValues): Durability {
  return values.text("--durability") === "Ephemeral" ? "ephemeral" : "persistent";
}

export const DURABILITY_NUMBER: Readonly<Record<Durability, number>> = {
  ephemeral: 0,
  persistent: 1,
};

/** An operation as code: values in, outcome out. */
export type RunOperation = (values: OptionValues, context: RunContext) => Promise<Outcome>;
export type RunTable = Readonly<Record<string, RunOperation>>;
