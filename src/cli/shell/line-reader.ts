/**
 * One line from the terminal at a time, each with a readline interface of its own.
 *
 * Between two lines nobody reads stdin, so that an enquirer prompt can have it alone: two readers
 * would double every key. Owns the terminal while it reads. Invariants: 1. Lines of one paste are
 * handed out one by one, none is lost. 2. Ctrl+C clears a line that has text, and leaves on an
 * empty one. 3. The interface is closed before the line is handed out. 4. A terminal that is gone
 * is told apart from Ctrl+D and never read again.
 */
import { createInterface, type Completer, type Interface } from "node:readline";
import { stdinIsGone, whenStdinGone } from "../invocation/hang-up.js";

export type LineResult =
  | { readonly kind: "line"; readonly line: string }
  /** Ctrl+C on an empty line. */
  | { readonly kind: "interrupt" }
  /** Ctrl+D. */
  | { readonly kind: "end" }
  /** The terminal is gone. */
  | { readonly kind: "gone" };

export class LineReader {
  private readonly completer: Completer;
  /** Lines of a paste that came with an earlier one, and the unfinished rest after them. */
  private readonly pending: string[] = [];
  private unfinished = "";
  private hasEnded = false;
  /** Ends the reading that goes on. */
  private onGone: () => void = () => undefined;

  constructor(completer: Completer) {
    this.completer = completer;
    void whenStdinGone().then(() => this.onGone());
  }

  /** `historyLines`: newest first. */
  read(prompt: string, historyLines: readonly string[]): Promise<LineResult> {
    if (stdinIsGone()) return Promise.resolve({ kind: "gone" });
    const next = this.pending.shift();
    if (next !== undefined) {
      process.stdout.write(`${prompt}${next}\n`);
      return Promise.resolve({ kind: "line", line: next });
    }
    if (this.hasEnded) return Promise.resolve({ kind: "end" });
    return this.readFromTerminal(prompt, historyLines);
  }

  private readFromTerminal(prompt: string, historyLines: readonly string[]): Promise<LineResult> {
    const reader = createInterface({
      input: process.stdin,
      output: process.stdout,
      terminal: true,
      prompt,
      history: [...historyLines],
      historySize: historyLines.length + 1,
      completer: this.completer,
      removeHistoryDuplicates: false,
      tabSize: 4,
    });
    // Errors of stdin come a second time through the interface.
    reader.on("error", () => reader.close());
    return new Promise((resolve) => {
      this.onGone = () => resolve({ kind: "gone" });
      const lines: string[] = [];
      let interrupted = false;
      const finish = (): void => {
        this.unfinished = reader.line;
        reader.close();
        // Its echo is wiped: it comes again behind the next prompt.
        if (this.unfinished !== "") process.stdout.write("\r\x1b[K");
      };
      reader.on("line", (line) => {
        // The rest of a paste arrives in the same turn: close only after it.
        if (lines.push(line) === 1) setImmediate(finish);
      });
      reader.on("SIGINT", () => {
        if (reader.line !== "") {
          clearLine(reader);
          return;
        }
        interrupted = true;
        reader.close();
      });
      reader.on("close", () => {
        this.pending.push(...lines.slice(1));
        const first = lines[0];
        if (first !== undefined) {
          resolve({ kind: "line", line: first });
          return;
        }
        if (stdinIsGone()) {
          resolve({ kind: "gone" });
          return;
        }
        process.stdout.write("\n");
        this.hasEnded = !interrupted;
        resolve({ kind: interrupted ? "interrupt" : "end" });
      });
      reader.prompt();
      if (this.unfinished !== "") reader.write(this.unfinished);
      this.unfinished = "";
    });
  }
}

/** What readline's own shell uses for Ctrl+C; it is there, but its types do not list it. */
interface Clearable {
  clearLine?(): void;
}

/** Leaves what was typed on the screen, as other shells do, and starts an empty line below it. */
function clearLine(reader: Interface & Clearable): void {
  reader.write(null, { ctrl: true, name: "e" });
  process.stdout.write("^C");
  reader.clearLine?.();
  reader.prompt();
}
