/**
 * The lines that were typed, across sessions.
 *
 * Owns the history file. Invariants: 1. The file is private (0600) and holds at most 1000 lines,
 * newest last. 2. Each line is appended when it is entered, so that a crash loses nothing; trimming
 * writes aside and renames. 3. A history that cannot be read or written never keeps the shell from
 * working. 4. A line that begins with a space is not kept.
 */
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import type { Environment } from "../invocation/settings.js";

export const HISTORY_LINES_MAX = 1000;
/** Longer lines are run but not kept. */
const LINE_MAX_CHARACTERS = 64 * 1024;

export function historyPath(environment: Environment): string {
  const state = environment["XDG_STATE_HOME"] ?? "";
  const home = environment["HOME"] || homedir();
  return join(isAbsolute(state) ? state : join(home, ".local", "state"), "svc", "history");
}

export class History {
  /** Oldest first. */
  private lines: string[] = [];
  private readonly path: string;
  private isWritable = true;

  constructor(path: string) {
    this.path = path;
    this.lines = this.readFile();
    if (this.lines.length > HISTORY_LINES_MAX) this.trim();
  }

  private readFile(): string[] {
    try {
      return readFileSync(this.path, "utf8")
        .split("\n")
        .filter((line) => line !== "");
    } catch {
      return [];
    }
  }

  /** Newest first, as readline wants them. */
  newestFirst(): string[] {
    return this.lines.slice(-HISTORY_LINES_MAX).reverse();
  }

  add(line: string): void {
    const isKept =
      line.trim() !== "" && !line.startsWith(" ") && line.length <= LINE_MAX_CHARACTERS;
    if (!isKept || line === this.lines.at(-1)) return;
    this.lines.push(line);
    if (this.lines.length > HISTORY_LINES_MAX * 2)
      this.lines = this.lines.slice(-HISTORY_LINES_MAX);
    this.write(() => appendFileSync(this.path, `${line}\n`, { mode: 0o600 }));
  }

  /** Keeps the newest lines of the file, those of other sessions included. */
  trim(): void {
    const all = this.readFile();
    if (all.length <= HISTORY_LINES_MAX) return;
    const kept = all.slice(-HISTORY_LINES_MAX);
    this.write(() => {
      const aside = `${this.path}.${process.pid}`;
      writeFileSync(aside, `${kept.join("\n")}\n`, { mode: 0o600 });
      renameSync(aside, this.path);
    });
  }

  private write(action: () => void): void {
    if (!this.isWritable) return;
    try {
      mkdirSync(dirname(this.path), { recursive: true, mode: 0o700 });
      action();
      chmodSync(this.path, 0o600);
    } catch {
      this.isWritable = false;
    }
  }
}
