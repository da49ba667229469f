/**
 * A false directory of backups whose calls are answered in one go, so that tests read from top to
 * bottom.
 */
import type { Result } from "../../../src/base/result.js";
import { FalseArchive, FalseArchiveDisk } from "./false-archive.js";

/** A call of this many steps does not end at all. */
const STEPS_MAX = 2_000_000;

export class ArchiveBench {
  private readonly queue: (() => void)[] = [];
  readonly disk: FalseArchiveDisk;
  readonly archive: FalseArchive;

  constructor() {
    this.disk = new FalseArchiveDisk((callback) => void this.queue.push(callback));
    this.archive = new FalseArchive(this.disk);
  }

  /** Starts something and makes all calls until it has answered; undefined when it never does. */
  call<T>(start: (done: (value: T) => void) => void): T | undefined {
    let answers = 0;
    let answer: T | undefined;
    start((value) => {
      answers++;
      answer = value;
    });
    for (let step = 0; this.queue.length > 0; step++) {
      if (step > STEPS_MAX) throw new Error("the calls do not end");
      this.queue.shift()?.();
    }
    if (answers > 1) throw new Error(`${answers} answers to one call`);
    return answer;
  }

  /** The value of a call that succeeds. */
  value<T>(start: (done: (result: Result<T>) => void) => void): T {
    const result = this.call(start);
    if (result === undefined) throw new Error("no answer");
    if (!result.ok) throw new Error(`${result.code}: ${result.message}`);
    return result.value;
  }

  /** "ok", or code and message of the failure. */
  said(start: (done: (result: Result<unknown>) => void) => void): string {
    const result = this.call(start);
    if (result === undefined) return "no answer";
    return result.ok ? "ok" : `${result.code}: ${result.message}`;
  }
}
