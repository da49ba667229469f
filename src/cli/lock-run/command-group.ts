/**
 * The command of `lock-run` with everything that it starts: pipelines, scripts, background jobs.
 *
 * Owns the child process. Invariants: 1. A signal reaches every process of the command, once.
 * 2. Without a terminal the command has a session and process group of its own, which is what is
 * signalled. With one it stays in the terminal's foreground group, so that it may read the terminal
 * and gets what the keyboard sends; its processes are then found by the environment they inherit
 * (where /proc shows it; elsewhere only the child itself is signalled). 3. A process that hides
 * behind another group and another environment is out of reach.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

/** A process as /proc names it. */
const PROCESS_DIRECTORY = /^[1-9][0-9]*$/;

function sendTo(id: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(id, signal);
  } catch {
    // Gone, or somebody else's.
    return false;
  }
}

export class CommandGroup {
  readonly child: ChildProcess;
  /** True when the keyboard's signals do not reach it by themselves. */
  readonly isSeparate: boolean;
  private readonly marks: readonly string[];

  /** `marks`: variables of its environment that together no other command has. */
  constructor(words: readonly [string, ...string[]], marks: Readonly<Record<string, string>>) {
    const [program, ...rest] = words;
    this.isSeparate = !process.stdin.isTTY;
    this.marks = Object.entries(marks).map(([name, value]) => `${name}=${value}`);
    this.child = spawn(program, rest, {
      stdio: "inherit",
      env: { ...process.env, ...marks },
      detached: this.isSeparate,
    });
  }

  signal(signal: NodeJS.Signals): void {
    const { pid } = this.child;
    if (pid === undefined) return;
    if (this.isSeparate) {
      sendTo(-pid, signal);
      return;
    }
    for (const id of new Set([pid, ...this.marked()])) sendTo(id, signal);
  }

  /** True while a process of it is there. */
  get isAlive(): boolean {
    const { pid } = this.child;
    if (pid === undefined) return false;
    return this.isSeparate ? sendTo(-pid, 0) : this.marked().length > 0;
  }

  /** The processes that carry the marks, without this one. */
  private marked(): number[] {
    let names: string[];
    try {
      names = readdirSync("/proc").filter((name) => PROCESS_DIRECTORY.test(name));
    } catch {
      return [];
    }
    return names.map(Number).filter((id) => id !== process.pid && this.isMarked(id));
  }

  private isMarked(id: number): boolean {
    try {
      const variables = readFileSync(`/proc/${id}/environ`, "utf8").split("\0");
      return this.marks.every((mark) => variables.includes(mark));
    } catch {
      return false;
    }
  }
}
