/** The test's side of terminal.py: one program on one pseudo-terminal. */
import { spawn, type ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { join } from "node:path";
import { root } from "../../tidy/sources.js";

const WAIT_SECONDS = 20;

interface Answer {
  readonly result: unknown;
  readonly screen: string;
}

export class Terminal {
  private readonly driver: ChildProcess;
  private readonly waiting: ((answer: Answer) => void)[] = [];
  /** What is on the screen (with what scrolled out above it) after the last step. */
  screen = "";

  private constructor() {
    this.driver = spawn("python3", [join(root, "test", "process", "cli", "terminal.py")], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    const reader = createInterface({ input: this.driver.stdout as NodeJS.ReadableStream });
    reader.on("line", (line) => this.waiting.shift()?.(JSON.parse(line) as Answer));
    this.driver.on("close", () => {
      for (const resolve of this.waiting.splice(0)) resolve({ result: null, screen: this.screen });
    });
  }

  /** Without `signals` it is not the controlling terminal: no SIGHUP comes when it hangs up. */
  static async start(
    command: readonly string[],
    environment: Readonly<Record<string, string>>,
    columns = 80,
    signals = true,
  ): Promise<Terminal> {
    const terminal = new Terminal();
    const env = { PATH: process.env["PATH"] ?? "", TERM: "xterm-256color", ...environment };
    await terminal.ask({ do: "start", argv: command, env, columns, signals });
    return terminal;
  }

  private async ask(request: Readonly<Record<string, unknown>>): Promise<unknown> {
    this.driver.stdin?.write(`${JSON.stringify(request)}\n`);
    const answer = await new Promise<Answer>((resolve) => this.waiting.push(resolve));
    this.screen = answer.screen;
    return answer.result;
  }

  async send(text: string): Promise<void> {
    await this.ask({ do: "send", text });
  }

  /** Waits for `pattern` (Python's) in what is written from now on. Throws with the screen else. */
  async see(pattern: string): Promise<void> {
    const found = await this.ask({ do: "wait", pattern, seconds: WAIT_SECONDS });
    if (found !== true) throw new Error(`no ${pattern} on this screen:\n${this.screen}`);
  }

  /** Reads until nothing more comes for a moment, so that `screen` is what a person sees. */
  async settle(): Promise<void> {
    await this.ask({ do: "settle", seconds: 0.3 });
  }

  async resize(columns: number): Promise<void> {
    await this.ask({ do: "resize", columns });
  }

  async signal(name: string): Promise<void> {
    await this.ask({ do: "signal", name });
  }

  /** The terminal goes away, as when its window is closed or a connection breaks. */
  async hangUp(): Promise<void> {
    await this.ask({ do: "hang_up" });
  }

  /** Everything that was written, codes included. */
  async raw(): Promise<string> {
    return String(await this.ask({ do: "raw" }));
  }

  /** The exit code (negative: a signal), or null when it does not end. */
  async ended(): Promise<number | null> {
    return (await this.ask({ do: "ended", seconds: WAIT_SECONDS })) as number | null;
  }

  /** The last line on the screen. */
  lastLine(): string {
    return this.screen.split("\n").at(-1) ?? "";
  }

  close(): void {
    this.driver.stdin?.end();
  }
}
