/** Runs the drivers of load (`grpc-driver.ts` and those of watches and waiters) as processes of their own. */
import { type ChildProcess, spawn } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));

/** What the driver of gRPC load prints. */
export interface DriverReport {
  readonly operations: number;
  readonly operationsPerSecond: number;
  readonly outcomes: Readonly<Record<string, number>>;
  readonly errors: number;
  readonly latencyMs: { readonly p50: number; readonly p99: number; readonly p999: number };
  /** From the sending of a release to the arrival of the next grant. */
  readonly handoffMs?: { readonly p50: number; readonly p99: number };
}

/** What the driver of watches prints. */
export interface FanoutReport {
  readonly deliveredPerSecond: number;
  readonly setsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Of all servers for one delivered event. */
  readonly processorUs: number;
  readonly driverUs: number;
  readonly missing: number;
}

/** Runs a driver to its end; rejects when it fails. */
function report(program: string, flags: readonly string[]): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const all = [join(here, program), ...flags];
    const child = spawn(process.execPath, all, { stdio: ["ignore", "pipe", "inherit"] });
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
    child.on("close", (code) => {
      if (code === 0) resolve(JSON.parse(output));
      else reject(new Error(`the driver ended with ${String(code)}: ${output}`));
    });
  });
}

/** `flags`: as the driver takes them, without address and seconds. Rejects when it fails. */
export function drive(
  address: string,
  seconds: number,
  flags: readonly string[],
): Promise<DriverReport> {
  const all = ["--address", address, "--seconds", String(seconds), ...flags];
  return report("grpc-driver.js", all) as Promise<DriverReport>;
}

/** `flags`: as the driver of watches takes them. */
export function driveWatches(flags: readonly string[]): Promise<FanoutReport> {
  return report("fanout-driver.js", flags) as Promise<FanoutReport>;
}

/** Watches or waiters that are held until `end`. */
export class Held {
  private constructor(private readonly child: ChildProcess) {}

  /** `flags`: as hold-driver.ts takes them. Resolves when they are there. */
  static begin(flags: readonly string[]): Promise<Held> {
    return new Promise((resolve, reject) => {
      const all = [join(here, "hold-driver.js"), ...flags];
      const child = spawn(process.execPath, all, { stdio: ["pipe", "pipe", "inherit"] });
      child.stdout.once("data", () => resolve(new Held(child)));
      child.once("close", (code) => reject(new Error(`what is held ended with ${String(code)}`)));
    });
  }

  end(): Promise<void> {
    return new Promise((resolve) => {
      this.child.once("close", () => resolve());
      this.child.stdin?.end();
    });
  }
}
