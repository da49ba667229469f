/**
 * The elections that a session of the shell leads.
 *
 * Owns its leaderships, which are renewed until they are resigned or lost; each is a lock in the
 * list of the session, too. Invariants: 1. One leadership per election. 2. A loss is said once, and
 * takes the lock out of the list.
 */
import { electionLock } from "../../client/elections/election.js";
import type { Leadership } from "../../client/mod.js";
import { Clients } from "../invocation/context.js";
import { leaderDocument, type ShownLeader } from "../lock-run/leader-answers.js";
import { newOwner } from "../lock-run/owners.js";
import { tellPlace } from "../lock-run/place.js";
import { jsonText } from "../terminal/format.js";
import { printLine } from "../terminal/screen.js";
import type { HeldLock, HeldLocks } from "./held-locks.js";

interface Led {
  readonly leadership: Leadership;
  readonly lock: HeldLock;
  value: Uint8Array | null;
}

export class ShellElections {
  private readonly clients: Clients;
  private readonly held: HeldLocks;
  private readonly led = new Map<string, Led>();

  constructor(clients: Clients, held: HeldLocks) {
    this.clients = clients;
    this.held = held;
  }

  /** Waits until it leads, or `signal` aborts; where it leads already, only the value changes. */
  async elect(name: string, value: string | null, signal: AbortSignal): Promise<void> {
    const bytes = value === null ? null : Buffer.from(value, "utf8");
    const known = this.led.get(name);
    if (known?.leadership.leads === true) {
      if (bytes !== null && (await known.leadership.proclaim(bytes, { signal }))) {
        known.value = bytes;
      }
      if (known.leadership.leads) {
        this.print(name, known);
        return;
      }
    }
    const led = this.take(name, await this.campaign(name, bytes, signal), bytes);
    this.print(name, led);
  }

  /** False: it did not lead. */
  async resign(name: string): Promise<boolean> {
    const led = this.led.get(name);
    const isResigned = led !== undefined && (await this.give(name, led));
    if (this.clients.settings.format === "json") printLine(jsonText(leaderDocument(name, null)));
    else printLine(isResigned ? "resigned" : "not leading");
    return isResigned;
  }

  /** Resigns what `lock` is the lock of; null: no election. */
  async resignLock(lock: HeldLock): Promise<boolean | null> {
    for (const [name, led] of this.led) if (led.lock === lock) return this.give(name, led);
    return null;
  }

  private give(name: string, led: Led): Promise<boolean> {
    this.led.delete(name);
    this.held.remove(led.lock);
    return led.leadership.resign();
  }

  private campaign(
    name: string,
    value: Uint8Array | null,
    signal: AbortSignal,
  ): Promise<Leadership> {
    const { endpoints } = this.clients.settings;
    const owner = newOwner();
    const waiting = `waiting to lead ${name}`;
    return this.clients.whileWaiting(
      null,
      async (progress) => {
        const client = await this.clients.open(endpoints);
        const options = { owner, value: value ?? undefined, signal };
        const wait = (): Promise<Leadership> => client.election(name).campaign(options);
        return tellPlace(progress, client, electionLock(name), { owner }, wait);
      },
      waiting,
      waiting,
    );
  }

  private take(name: string, leadership: Leadership, value: Uint8Array | null): Led {
    const lock: HeldLock = {
      resource: electionLock(name),
      durability: "persistent",
      owner: leadership.ownerText ?? "",
      fencingToken: String(leadership.epoch),
      // It is renewed: its end is told by its signal.
      endsMs: Number.POSITIVE_INFINITY,
    };
    const led = { leadership, lock, value };
    this.led.set(name, led);
    this.held.put(lock);
    const lost = (): void => {
      if (this.led.get(name) !== led) return;
      this.led.delete(name);
      this.held.remove(lock);
      process.stderr.write(`note: ${name}: the leadership is lost\n`);
    };
    leadership.signal.addEventListener("abort", lost, { once: true });
    return led;
  }

  private print(name: string, { leadership, value }: Led): void {
    const { epoch, owner, ownerText } = leadership;
    const leader: ShownLeader = { epoch, owner, value };
    if (this.clients.settings.format === "json") printLine(jsonText(leaderDocument(name, leader)));
    else printLine(`f${epoch} leads ${ownerText ?? ""}`);
  }
}
