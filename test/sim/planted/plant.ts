/**
 * Plants a bug: a copy of the compiled floors and of the simulator in a folder of its own, with the
 * planted sources compiled, and a child process that runs seeds in it.
 *
 * Invariants: 1. The real code is never touched: files are linked, and a planted one is replaced, not
 * written through. 2. Folders are removed, and children end, in every case. 3. A child that does not
 * answer is ended, and counts as having seen an endless loop.
 */
import { type ChildProcess, fork } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { plantedModules } from "../../planted/edits.js";
import { growTree } from "../../planted/tree.js";
import type { PlanOverrides } from "../plan/plan.js";
import type { Mutation } from "./mutation.js";

const FOLDERS = ["src", "test/sim", "test/judge", "test/doubles"];
/** A seed that takes longer than this (ms) does not end at all. */
const SEED_MAX_MS = 240_000;

/** One run that a child is asked for. */
export interface SeedOrder {
  readonly seed: number;
  readonly profile: string;
  readonly overrides: PlanOverrides;
}

/** What it says of it. */
export interface SeedVerdict {
  readonly violations: readonly string[];
  /** Processor time (ms). */
  readonly usedMs: number;
  readonly simulatedMs: number;
}

/** A tree with the bug, or the real code for null, and the process that runs it. */
export class PlantedTree {
  private readonly folder: string;
  private child: ChildProcess | null = null;

  /** `modules`: those with the bug, by their path below `dist/`. */
  private constructor(modules: ReadonlyMap<string, string>) {
    this.folder = mkdtempSync(join(tmpdir(), "svc-planted-"));
    growTree(this.folder, FOLDERS, [], modules);
  }

  /** Rejects if an edit does not fit its source. */
  static async grow(mutation: Mutation | null): Promise<PlantedTree> {
    return new PlantedTree(mutation === null ? new Map() : await plantedModules(mutation));
  }

  /** Runs one seed. One at a time. */
  run(order: SeedOrder): Promise<SeedVerdict> {
    this.child ??= fork(join(this.folder, "test", "sim", "planted", "child.js"), [], {
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    const { child } = this;
    return new Promise((resolve) => {
      let said = "";
      const gone = (why: string): void => {
        this.child = null;
        end({ violations: [why], usedMs: 0, simulatedMs: 0 });
      };
      const note = (bytes: Buffer): void => {
        said = `${said}${bytes.toString()}`.slice(-2000);
      };
      const exited = (): void => gone(`the process ends: ${said}`);
      const timer = setTimeout(() => {
        child.kill("SIGKILL");
        gone("the run does not end");
      }, SEED_MAX_MS);
      const end = (verdict: SeedVerdict): void => {
        clearTimeout(timer);
        child.off("exit", exited);
        child.off("message", end);
        child.stderr?.off("data", note);
        resolve(verdict);
      };
      child.on("message", end);
      child.on("exit", exited);
      child.stderr?.on("data", note);
      child.send(order);
    });
  }

  close(): void {
    this.child?.removeAllListeners();
    this.child?.kill();
    this.child = null;
    rmSync(this.folder, { recursive: true, force: true });
  }
}
