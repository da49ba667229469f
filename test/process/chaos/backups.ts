/**
 * Backups of a chaos run: while everything else is done to the nodes, one coordinated after the other is asked for where
 * meta is led, and beside it what goes on from the last one, or a Full, at any node.
 *
 * Invariants: 1. What was answered as taken is remembered with the time of the call: the cut lies between call and answer.
 * 2. A call has one answer, or none; nothing is repeated. 3. Nothing is waited for without an end.
 */
import { join } from "node:path";
import { mkdirSync } from "node:fs";
import type { Prng } from "../../../src/base/prng.js";
import { Findings, type Verdict } from "../../judge/checkers/verdict.js";
import { sleep, temporaryDirectory } from "../cluster/server-process.js";
import { Asking, type Json } from "./asking.js";
import type { ChaosNodes } from "./nodes.js";

const PAUSE_MS = 5000;
/** A caller that waits longer than faults last: it ends the backup by going away. */
const CALL_MS = 60_000;
/** Older chains are collected. */
const CHAINS = 24;

/** A cut that is older than this at the end of the faults is not the last one. */
const LATE_MS = 20_000;
const LATE_TRIES_MAX = 5;

export interface Taken {
  readonly id: string;
  readonly kind: "Full" | "Incremental";
  /** Ends at one instant of the whole cluster. */
  readonly isCut: boolean;
  readonly calledMs: number;
  readonly answeredMs: number;
}

/** A restored directory, and where those of others may lie. */
export interface RestoredPlace {
  readonly directory: string;
  readonly others: string;
}

/** Where backups of a run lie, and what is restored from them. */
export class BackupPlace {
  private readonly directory = temporaryDirectory();
  readonly backups = join(this.directory.path, "backups");
  readonly restores = join(this.directory.path, "restores");

  constructor() {
    for (const path of [this.backups, this.restores]) mkdirSync(path, { mode: 0o700 });
  }

  get flags(): readonly string[] {
    return [
      `--pitr-backup-dir=${this.backups}`,
      `--pitr-restore-root=${this.restores}`,
      "--pitr-backup-cluster-id=chaos",
      `--backup-retention-max-chains=${CHAINS}`,
      "--backup-gc-interval=20s",
    ];
  }

  remove(): void {
    this.directory.remove();
  }
}

export class ChaosBackups {
  readonly taken: Taken[] = [];
  /** Calls by kind and answer. */
  readonly answers = new Map<string, number>();
  private readonly asking: Asking;
  private isStopped = false;

  constructor(
    private readonly nodes: ChaosNodes,
    private readonly place: BackupPlace,
    private readonly prng: Prng,
    /** Key ranges change so often that hardly any backup can be continued. */
    private readonly isRanged: boolean,
  ) {
    this.asking = new Asking(nodes);
  }

  /** Takes backups until `stop`. */
  async run(): Promise<void> {
    await Promise.all([
      this.loop(() => this.coordinated()),
      this.loop(() => this.atAnyNode(this.prng)),
    ]);
  }

  stop(): void {
    this.isStopped = true;
  }

  /** After the faults, where the last cut was taken long ago: clients are to have done something on either side of it. */
  async takeLate(): Promise<void> {
    for (let tries = 0; tries < LATE_TRIES_MAX; tries++) {
      const cut = this.taken.filter(({ isCut }) => isCut).at(-1);
      if (cut !== undefined && performance.now() - cut.answeredMs < LATE_MS) return;
      await this.coordinated();
      await sleep(1000);
    }
  }

  /** The last one that ends at one instant, and the last one that goes on from another; as far as there are any. */
  get last(): readonly Taken[] {
    const cut = this.taken.filter(({ isCut }) => isCut).at(-1);
    const next = this.taken.filter((taken) => this.isKept(taken)).at(-1);
    return [cut, next].filter((each) => each !== undefined);
  }

  /** Goes on from another one, and its chain has not been collected for the sake of newer ones. */
  private isKept({ kind, calledMs }: Taken): boolean {
    const newer = this.taken.filter((one) => one.kind === "Full" && one.answeredMs > calledMs);
    return kind === "Incremental" && newer.length < CHAINS / 2;
  }

  private async loop(step: () => Promise<void>): Promise<void> {
    while (!this.isStopped) {
      await step();
      for (let waited = 0; waited < PAUSE_MS && !this.isStopped; waited += 100) await sleep(100);
    }
  }

  private async coordinated(): Promise<void> {
    const asked = 1 + this.prng.below(this.nodes.count);
    const leader = await this.asking.metaLeader(asked);
    await this.take(leader === 0 ? asked : leader, "coordinated", {});
  }

  private async atAnyNode(prng: Prng): Promise<void> {
    const node = 1 + prng.below(this.nodes.count);
    if (this.taken.length === 0 || prng.chance(1, 6)) await this.take(node, "full", {});
    const parent = this.taken.at(-1);
    if (parent !== undefined) await this.take(node, "incremental", { parentBackupId: parent.id });
  }

  private async take(node: number, kind: string, body: object): Promise<void> {
    const calledMs = performance.now();
    const answer = await this.asking.ask(node, `/v1/backups/${kind}`, body, CALL_MS);
    const answeredMs = performance.now();
    const id = answer?.["backupId"];
    const { text, isTaken } = said(answer);
    this.answers.set(`${kind} ${text}`, (this.answers.get(`${kind} ${text}`) ?? 0) + 1);
    if (!isTaken || typeof id !== "string") return;
    const type = answer?.["type"] === "Incremental" ? "Incremental" : "Full";
    this.taken.push({ id, kind: type, isCut: kind === "coordinated", calledMs, answeredMs });
    // The order of the answers is not that of the calls.
    this.taken.sort((one, other) => one.answeredMs - other.answeredMs);
  }

  /** Whatever is listed as a backup is whole, verified through any node that answers. */
  async verify(running: readonly number[]): Promise<Verdict> {
    const minimum = { cuts: 1, incrementals: this.isRanged ? 0 : 1, "chains verified": 1 };
    const findings = new Findings("backups are taken and whole", minimum);
    findings.count("taken", this.taken.length);
    findings.count("cuts", this.taken.filter(({ isCut }) => isCut).length);
    const incrementals = this.taken.filter(({ kind }) => kind === "Incremental");
    findings.count("incrementals", incrementals.length);
    const listed = await this.listed(running);
    if (listed === null) findings.violation("nobody lists the backups");
    const parents = new Set(listed?.map(({ parentBackupId }) => parentBackupId));
    for (const { backupId, isInvalid, isIncomplete, invalidReason } of listed ?? []) {
      findings.count("listed");
      // What was begun by who is dead by now is collected after an hour.
      if (isInvalid === true && isIncomplete !== true) {
        findings.violation(`${String(backupId)} is no good: ${String(invalidReason)}`);
      }
      if (isInvalid === true || parents.has(backupId)) continue;
      findings.count("chains verified");
      const node = running[0] ?? 0;
      const body = { leafBackupId: backupId };
      const answer = await this.asking.ask(node, "/v1/backups/validate-chain", body, CALL_MS);
      if (!Array.isArray(answer)) findings.violation(`${String(backupId)}: ${said(answer).text}`);
    }
    return findings.verdict();
  }

  private async listed(running: readonly number[]): Promise<readonly Json[] | null> {
    for (const node of running) {
      const answer: unknown = await this.asking.ask(node, "/v1/backups", undefined, CALL_MS);
      if (Array.isArray(answer)) return answer as readonly Json[];
    }
    return null;
  }

  /** Has a node that runs restore a backup. What it said when it did not. */
  async restore(
    running: readonly number[],
    { id }: Taken,
    name: string,
  ): Promise<RestoredPlace | string> {
    let words = "nobody was asked";
    const targetDir = join(this.place.restores, name);
    for (const node of running) {
      const body = { leafBackupId: id, targetDir };
      const answer = await this.asking.ask(node, "/v1/restore", body);
      if (answer?.["outcome"] === 0) {
        return { directory: targetDir, others: join(this.place.restores, `beside-${name}`) };
      }
      words = JSON.stringify(answer);
    }
    return words;
  }
}

/** An answer in a few words. */
function said(answer: Json | null): { readonly text: string; readonly isTaken: boolean } {
  if (answer === null) return { text: "no answer", isTaken: false };
  if (typeof answer["backupId"] === "string") {
    const why = answer["substitutionReason"] ?? answer["actualKind"];
    return { text: String(why), isTaken: true };
  }
  return { text: String(answer["outcome"] ?? answer["code"]), isTaken: false };
}
