/**
 * The steps of a backup as a node tells them while it runs, and who of those that take part is killed at which: a table
 * of kills, played on one cluster of real processes.
 *
 * Invariants: 1. A kill counts only when its step was told a moment before. 2. Whoever is killed stays dead until the
 * backup has ended. 3. Whatever has a manifest is whole, by what lies on the disk. 4. Nothing is waited for without an
 * end.
 */
import { readdirSync, statSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { type VerifiedChain, validateChain } from "../../../src/backup/validate.js";
import { RealArchive, signatures } from "../../../src/disk/archive.js";
import { sleep } from "../cluster/server-process.js";
import type { Load } from "../placement/load.js";
import { type PlacedNodes, eventually } from "../placement/placed-nodes.js";

const KINDS = ["full", "coordinated", "incremental"] as const;
type Kind = (typeof KINDS)[number];
/** An incremental has no images: its first step is to have logs held. */
const STEPS = ["images", "marks", "logs", "checking", "publishing"] as const;
const FIRST_OF_INCREMENTAL = "holding";
const VICTIMS = ["keeper", "shipper", "leader of a group", "leader of meta"] as const;
type Victim = (typeof VICTIMS)[number];
const LOOK_MS = 2;
const CALL_MS = 120_000;

export interface TakingCell {
  readonly kind: Kind;
  readonly step: (typeof STEPS)[number] | typeof FIRST_OF_INCREMENTAL;
  readonly victim: Victim;
}

/** The whole table: every step with every victim. Neighbours differ in both, and in the kind. */
export const TAKING_CELLS: readonly TakingCell[] = VICTIMS.flatMap((_, shift) =>
  STEPS.map((step, at): TakingCell => {
    const victim = VICTIMS[(shift + at) % VICTIMS.length] as Victim;
    const kind = KINDS[(2 * shift + at) % KINDS.length] as Kind;
    const isFirst = kind === "incremental" && step === "images";
    return { kind, step: isFirst ? FIRST_OF_INCREMENTAL : step, victim };
  }),
);

export function takingText({ kind, step, victim }: TakingCell): string {
  return `${kind}: the ${victim} dies at ${step}`;
}

/** How a backup ended for its caller; null: no answer came. */
export type Ended = { readonly taken: string } | { readonly outcome: string } | null;

interface Running {
  readonly phase: string;
  readonly kind: string;
}

export class TakingSteps {
  /** The last one that was answered as taken. */
  private last = "";

  constructor(
    private readonly nodes: PlacedNodes,
    private readonly load: Load,
    private readonly backups: string,
    private readonly say: (text: string) => void,
  ) {}

  async prepare(): Promise<void> {
    const ended = await this.take(this.nodes.running[0] ?? 1, "full", {});
    if (ended === null || !("taken" in ended)) throw new Error(`no Full: ${JSON.stringify(ended)}`);
  }

  /** Plays a cell; `isSeen` false: the step was over before anybody looked. */
  async play(cell: TakingCell): Promise<{ readonly isSeen: boolean; readonly ended: Ended }> {
    const { nodes, load } = this;
    const meta = await this.metaLeader();
    const others = nodes.running.filter((node) => node !== meta);
    const keeper = cell.kind === "coordinated" ? meta : (others[0] as number);
    const leader = await this.leaderOfGroup([keeper, meta]);
    const body = cell.kind === "incremental" ? { parentBackupId: this.last } : {};
    let isOver = false;
    const taking = this.take(keeper, cell.kind, body).finally(() => (isOver = true));
    let shipper = 0;
    let looking: Promise<void> | null = null;
    let isSeen = false;
    while (!isOver && !isSeen) {
      const phase = await this.phase(keeper);
      if (cell.victim === "shipper" && shipper === 0 && phase !== "" && phase !== "beginning") {
        looking ??= this.shipper(keeper).then((found) => {
          shipper = found;
          looking = null;
        });
      }
      const victim = { keeper, shipper, "leader of a group": leader, "leader of meta": meta };
      if (phase === cell.step && victim[cell.victim] !== 0) {
        isSeen = true;
        this.say(`node ${victim[cell.victim]} is killed: ${takingText(cell)}`);
        await this.kill(victim[cell.victim], taking);
      } else await sleep(LOOK_MS);
    }
    await Promise.all([looking]);
    const ended = await taking;
    await Promise.all(nodes.running.map((id) => nodes.node(id).ready()));
    await load.goesOn(20);
    return { isSeen, ended };
  }

  private async kill(victim: number, taking: Promise<Ended>): Promise<void> {
    const { nodes, load } = this;
    const dead = nodes.kill(victim);
    load.leave(victim);
    await dead;
    await taking;
    await nodes.launch(victim).ready();
    await load.open(nodes, victim);
  }

  /** Verifies whatever has a manifest; how many have. */
  async verify(): Promise<number> {
    const names = readdirSync(this.backups).filter((name) => name.endsWith(".manifest"));
    for (const name of names) await this.verified(name.slice(0, 32));
    return names.length;
  }

  private verified(id: string): Promise<VerifiedChain> {
    return new Promise((resolve, reject) => {
      validateChain(new RealArchive(this.backups), signatures(null), id, {}, (result) => {
        if (result.ok) resolve(result.value);
        else reject(new Error(`${id}: ${result.code}: ${result.message}`));
      });
    });
  }

  /** No log is held on any node, once the last hold has lapsed. */
  async rest(): Promise<void> {
    const { nodes } = this;
    await eventually("no hold is left", async () => {
      const held = await Promise.all(nodes.running.map((node) => this.holds(node)));
      return held.every((count) => count === 0);
    });
  }

  /** What dead keepers left is as old as two hours; a collection takes it. What is left then. */
  async collected(): Promise<readonly string[]> {
    const age = (path: string): void => {
      if (statSync(path).isDirectory()) for (const name of readdirSync(path)) age(join(path, name));
      const at = Date.now() / 1000 - 7200;
      utimesSync(path, at, at);
    };
    const isLeft = (name: string): boolean => /staging|lease|tmp_/.test(name);
    for (const name of readdirSync(this.backups).filter(isLeft)) age(join(this.backups, name));
    await this.post(this.nodes.running[0] ?? 1, "/v1/backups/gc", {});
    return readdirSync(this.backups).filter(isLeft);
  }

  private async take(node: number, kind: Kind, body: object): Promise<Ended> {
    const answer = await this.post(node, `/v1/backups/${kind}`, body);
    if (answer === null) return null;
    const id = answer["backupId"];
    if (typeof id !== "string") return { outcome: String(answer["outcome"] ?? answer["code"]) };
    this.last = id;
    return { taken: id };
  }

  /** Null: no answer. */
  private async post(
    node: number,
    path: string,
    body?: object,
  ): Promise<Readonly<Record<string, unknown>> | null> {
    const { http } = await this.nodes.addresses(node);
    const headers = { "content-type": "application/json" };
    const content =
      body === undefined ? {} : { method: "POST", body: JSON.stringify(body), headers };
    try {
      const signal = AbortSignal.timeout(CALL_MS);
      const answer = await fetch(`http://${http}${path}`, { ...content, signal });
      return (await answer.json()) as Record<string, unknown>;
    } catch {
      return null;
    }
  }

  /** Of the backup that the keeper takes; "" when none runs. */
  private async phase(keeper: number): Promise<string> {
    const running: unknown = this.nodes.running.includes(keeper)
      ? await this.post(keeper, "/v1/backups/running")
      : null;
    const list = Array.isArray(running) ? (running as readonly Running[]) : [];
    return list.find(({ kind }) => (KINDS as readonly string[]).includes(kind))?.phase ?? "";
  }

  private async holds(node: number): Promise<number> {
    const { http } = await this.nodes.addresses(node);
    const text = await (await fetch(`http://${http}/metrics`)).text();
    return Number(/^svc_backup_holds (\d+)$/m.exec(text)?.[1] ?? -1);
  }

  /** Another node that ships; 0 = none yet. */
  private async shipper(keeper: number): Promise<number> {
    const others = this.nodes.running.filter((node) => node !== keeper);
    const held = await Promise.all(others.map((node) => this.holds(node).catch(() => 0)));
    return others[held.findIndex((count) => count > 0)] ?? 0;
  }

  /** A node that leads a group, other than these; 0 = none. */
  private async leaderOfGroup(not: readonly number[]): Promise<number> {
    const { nodes } = this;
    const routing = await this.post(nodes.running[0] ?? 1, "/v1/cluster/routing");
    const leaders = (routing?.["leaders"] ?? []) as readonly { readonly endpoint: string }[];
    for (const node of nodes.running.filter((id) => !not.includes(id))) {
      const { grpc } = await nodes.addresses(node);
      if (leaders.some(({ endpoint }) => endpoint === `http://${grpc}`)) return node;
    }
    return nodes.running.find((id) => !not.includes(id)) ?? 0;
  }

  /** As soon as there is one that runs and says so itself. */
  private async metaLeader(): Promise<number> {
    const { nodes } = this;
    let leader = 0;
    await eventually("somebody leads meta", async () => {
      const known = await nodes.metaLeader(nodes.running[0] ?? 1);
      if (!nodes.running.includes(known) || (await nodes.metaLeader(known)) !== known) return false;
      leader = known;
      return true;
    });
    return leader;
  }
}
