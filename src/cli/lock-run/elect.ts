/**
 * `elect`: leads an election, with a command that runs only meanwhile, or without one.
 *
 * Invariants: 1. What `lock-run` promises its command holds here too. 2. Without a command it leads
 * until a signal, and resigns before it ends. 3. A lost leadership never ends with exit code 0. 4.
 * With --keep a loss, and a service that cannot be reached after one, is no end. 5. With a command
 * stdout belongs to it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { electionLock } from "../../client/elections/election.js";
import { LockNotAcquiredError, SvcError, type Leadership } from "../../client/mod.js";
import { OPERATION_TIMEOUT_DEFAULT_S } from "../commands/options.js";
import { Clients } from "../invocation/context.js";
import { EXIT_REFUSED, EXIT_UNEXPECTED } from "../invocation/exit-codes.js";
import { deferEarlyEnd, setLastWork } from "../invocation/hang-up.js";
import { leaderDocument, leaderLine } from "./leader-answers.js";
import { GRACE_DEFAULT_MS, release, runHolding, say, signalExit } from "./held-command.js";
import type { CommandEnd, Holding } from "./held-command.js";
import { newOwner, ownerBytes, valueBytes } from "./owners.js";
import { tellPlace } from "./place.js";
import type { Settings } from "../invocation/settings.js";
import { SignalRelay } from "./signal-relay.js";
import { jsonText } from "../terminal/format.js";
import type { Progress } from "../terminal/progress.js";
import { printLine } from "../terminal/screen.js";
import type { OptionValues } from "../commands/values.js";

const UNDER = "the leadership";
/** Mean pause before it campaigns again where the service could not be reached (ms). */
const AGAIN_MS = 1000;

export interface Elect {
  readonly name: string;
  /** The command; none: it leads until a signal. */
  readonly words: readonly string[];
  readonly values: OptionValues;
  readonly settings: Settings;
}

function holdingOf(leadership: Leadership): Holding {
  return {
    signal: leadership.signal,
    get held() {
      return leadership.leads;
    },
    release: (options) => leadership.resign(options),
  };
}

class ElectRun {
  private readonly elect: Elect;
  private readonly clients: Clients;
  private readonly signals: SignalRelay;
  private readonly owner = newOwner();
  private hasLed = false;

  constructor(elect: Elect, clients: Clients, signals: SignalRelay) {
    this.elect = elect;
    this.clients = clients;
    this.signals = signals;
  }

  /** Returns the exit code. */
  async run(): Promise<number> {
    const keeps = this.elect.values.flag("--keep");
    for (;;) {
      const leadership = await this.campaign(keeps);
      if (this.signals.stoppedBy !== null && leadership === null)
        return signalExit(this.signals.stoppedBy);
      if (leadership === null) return this.refused();
      this.hasLed = true;
      const { code, isLost } = await this.lead(leadership);
      if (!isLost || !keeps || this.signals.stoppedBy !== null) return code;
      say("campaigning again");
    }
  }

  private async lead(leadership: Leadership): Promise<CommandEnd> {
    const { name, words, values } = this.elect;
    if (words.length === 0) return this.leadUntilSignal(leadership);
    // Without a terminal the child must still be ended in time when the leadership is lost.
    deferEarlyEnd();
    const environment = {
      SVC_FENCING_TOKEN: String(leadership.epoch),
      SVC_LOCK_RESOURCE: electionLock(name),
      SVC_LOCK_OWNER: this.owner,
      SVC_ELECTION: name,
      SVC_ELECTION_VALUE: values.text("--value") ?? "",
    };
    const graceMs = values.number("--grace") ?? GRACE_DEFAULT_MS;
    const command = { words, environment, graceMs, under: UNDER };
    return runHolding(command, holdingOf(leadership), this.signals);
  }

  private async leadUntilSignal(leadership: Leadership): Promise<CommandEnd> {
    const { signal } = leadership;
    const holding = holdingOf(leadership);
    setLastWork(() => release(holding, UNDER));
    this.print(`f${leadership.epoch} leads ${this.owner}`, leadership);
    const stop = this.signals.signal;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        signal.removeEventListener("abort", end);
        stop.removeEventListener("abort", end);
        resolve();
      };
      signal.addEventListener("abort", end, { once: true });
      stop.addEventListener("abort", end, { once: true });
      if (signal.aborted || stop.aborted) end();
    });
    setLastWork(null);
    if (this.signals.stoppedBy !== null) {
      await release(holding, UNDER);
      return { code: signalExit(this.signals.stoppedBy), isLost: false };
    }
    const reason: unknown = signal.reason;
    say(`${UNDER} is lost: ${reason instanceof Error ? reason.message : String(reason)}`);
    if (this.elect.settings.format === "json") this.print("", null);
    return { code: EXIT_UNEXPECTED, isLost: true };
  }

  /** Null: somebody else led until `--wait` was over, or a signal came. */
  private async campaign(keeps: boolean): Promise<Leadership | null> {
    for (;;) {
      try {
        return await this.campaignOnce();
      } catch (error) {
        if (this.signals.stoppedBy !== null || error instanceof LockNotAcquiredError) return null;
        const isPassing = error instanceof SvcError && error.retryable;
        if (!keeps || !this.hasLed || !isPassing) throw error;
        say(`${error.message}; campaigning again`);
      }
      const pauseMs = AGAIN_MS * (0.5 + Math.random());
      await sleep(pauseMs, undefined, { signal: this.signals.signal }).catch(() => undefined);
    }
  }

  private campaignOnce(): Promise<Leadership> {
    const { name, values, settings } = this.elect;
    const waitMs = values.number("--wait") ?? Number.POSITIVE_INFINITY;
    const limitMs = settings.timeoutMs ?? waitMs + OPERATION_TIMEOUT_DEFAULT_S * 1000;
    const asked = { owner: ownerBytes(this.owner) };
    const campaign = async (progress: Progress): Promise<Leadership> => {
      const client = await this.clients.open(settings.endpoints);
      const wait = (): Promise<Leadership> =>
        client.election(name).campaign({
          ...asked,
          value: valueBytes(values),
          leaseMs: values.number("--expires") ?? undefined,
          waitMs,
          signal: this.signals.signal,
          deadlineMs: limitMs,
        });
      return tellPlace(progress, client, electionLock(name), asked, wait);
    };
    const waiting = `waiting to lead ${name}`;
    const boundMs = Number.isFinite(limitMs) ? limitMs : null;
    return this.clients.whileWaiting(boundMs, campaign, waiting, waiting);
  }

  private refused(): number {
    if (this.elect.words.length === 0) this.print("not leading", null);
    else process.stderr.write("not leading\n");
    return EXIT_REFUSED;
  }

  private print(line: string, leadership: Leadership | null): void {
    const { name, values, settings } = this.elect;
    if (settings.format !== "json") {
      printLine(line);
      return;
    }
    const value = valueBytes(values) ?? null;
    const { epoch, owner } = leadership ?? {};
    const leader = epoch === undefined || owner === undefined ? null : { epoch, owner, value };
    printLine(jsonText(leaderDocument(name, leader)));
  }
}

/** Tells who leads, until a signal. */
async function observe({ name, settings }: Elect, clients: Clients, signals: SignalRelay) {
  const { signal } = signals;
  const client = await clients.open(settings.endpoints);
  try {
    for await (const leader of client.election(name).observe({ signal })) {
      const isJson = settings.format === "json";
      printLine(isJson ? jsonText(leaderDocument(name, leader)) : leaderLine(leader));
    }
  } catch (error) {
    if (signals.stoppedBy === null) throw error;
  }
  return signals.stoppedBy === null ? EXIT_UNEXPECTED : signalExit(signals.stoppedBy);
}

/** Leads, and runs the command meanwhile. Returns the exit code. */
export async function runElected(elect: Elect): Promise<number> {
  const clients = new Clients(elect.settings);
  const signals = new SignalRelay();
  signals.begin();
  try {
    if (elect.values.flag("--observe")) return await observe(elect, clients, signals);
    return await new ElectRun(elect, clients, signals).run();
  } finally {
    // Also ends what a failed campaign left behind.
    await clients.close();
    signals.end();
  }
}
