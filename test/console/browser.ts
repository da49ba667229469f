/**
 * A real Chromium without a window, spoken to in its own protocol over a pair of pipes.
 *
 * Invariants: 1. Only the process that was started here is ended, and its profile goes with it. 2. No port is opened:
 * nobody else on the machine can drive it. 3. Every command ends, with an answer or within COMMAND_MAX_MS.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { temporaryDirectory } from "../process/cluster/server-process.js";
import { Tab } from "./tab.js";

const PROGRAMS = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];
const COMMAND_MAX_MS = 30_000;
const CLOSE_MAX_MS = 5000;

/** The browser of this machine; null: there is none. `SVC_BROWSER` names another one. */
export function findBrowser(): string | null {
  const wanted = process.env["SVC_BROWSER"];
  const names = wanted === undefined ? PROGRAMS : [wanted];
  return names.find((name) => spawnSync(name, ["--version"]).status === 0) ?? null;
}

export type Members = Readonly<Record<string, unknown>>;

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Members;
  readonly result?: Members;
  readonly error?: { readonly message: string };
  readonly sessionId?: string;
}

interface Waiting {
  readonly resolve: (result: Members) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

export type Listen = (method: string, params: Members) => void;

export class Browser {
  private lastId = 0;
  private readonly waiting = new Map<number, Waiting>();
  private readonly listeners = new Map<string, Listen>();
  private rest = "";
  private log = "";

  private constructor(
    private readonly child: ChildProcess,
    private readonly profile: { remove(): void },
  ) {
    (child.stdio[4] as Readable).setEncoding("utf8").on("data", (text: string) => this.take(text));
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.log = (this.log + text).slice(-4000);
    });
    (child.stdio[3] as Writable).on("error", () => undefined);
    child.on("close", () => this.failAll(`the browser ended:\n${this.log}`));
  }

  static start(program: string): Browser {
    const profile = temporaryDirectory();
    const flags = [
      "--headless",
      "--remote-debugging-pipe",
      `--user-data-dir=${profile.path}`,
      "--disable-gpu",
      "--disable-dev-shm-usage",
      "--disable-background-networking",
      "--disable-component-update",
      "--no-first-run",
      "--no-default-browser-check",
      "--force-color-profile=srgb",
      "--hide-scrollbars",
      // The certificate of a test is nobody's.
      "--ignore-certificate-errors",
      // Its sandbox does not work for root, as whom tests run in containers.
      ...(process.getuid?.() === 0 ? ["--no-sandbox"] : []),
    ];
    const stdio = ["ignore", "ignore", "pipe", "pipe", "pipe"] as const;
    const child = spawn(program, flags, { stdio: [...stdio] });
    child.on("error", () => undefined);
    return new Browser(child, profile);
  }

  private take(text: string): void {
    const messages = (this.rest + text).split("\0");
    this.rest = messages.pop() ?? "";
    for (const message of messages) this.dispatch(JSON.parse(message) as Message);
  }

  private dispatch({ id, method, params, result, error, sessionId }: Message): void {
    if (id === undefined) {
      this.listeners.get(sessionId ?? "")?.(method ?? "", params ?? {});
      return;
    }
    const waiting = this.waiting.get(id);
    if (waiting === undefined) return;
    this.waiting.delete(id);
    clearTimeout(waiting.timer);
    if (error === undefined) waiting.resolve(result ?? {});
    else waiting.reject(new Error(error.message));
  }

  private failAll(reason: string): void {
    for (const { reject, timer } of this.waiting.values()) {
      clearTimeout(timer);
      reject(new Error(reason));
    }
    this.waiting.clear();
  }

  send(method: string, params: Members = {}, sessionId?: string): Promise<Members> {
    const id = ++this.lastId;
    return new Promise((resolve, reject) => {
      const expired = (): void => {
        this.waiting.delete(id);
        reject(new Error(`${method} had no answer`));
      };
      const timer = setTimeout(expired, COMMAND_MAX_MS);
      this.waiting.set(id, { resolve, reject, timer });
      const message = { id, method, params, ...(sessionId === undefined ? {} : { sessionId }) };
      (this.child.stdio[3] as Writable).write(`${JSON.stringify(message)}\0`);
    });
  }

  /** An empty tab that shares nothing with the others. */
  async open(): Promise<Tab> {
    const { browserContextId } = await this.send("Target.createBrowserContext");
    const target = { url: "about:blank", browserContextId };
    const { targetId } = await this.send("Target.createTarget", target);
    const attached = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const sessionId = attached["sessionId"] as string;
    const send = (method: string, params?: Members): Promise<Members> =>
      this.send(method, params, sessionId);
    const listen = (listener: Listen): void => void this.listeners.set(sessionId, listener);
    const close = async (): Promise<void> => {
      this.listeners.delete(sessionId);
      await this.send("Target.disposeBrowserContext", { browserContextId });
    };
    return Tab.of({ send, listen, close });
  }

  async close(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      const ended = new Promise((resolve) => this.child.once("exit", resolve));
      // It ends its own children when it is asked, and they let go of the profile.
      void this.send("Browser.close").catch(() => undefined);
      const timer = setTimeout(() => this.child.kill("SIGKILL"), CLOSE_MAX_MS);
      await ended;
      clearTimeout(timer);
    }
    this.failAll("the browser was closed");
    for (const stream of this.child.stdio) stream?.destroy();
    this.profile.remove();
  }
}
