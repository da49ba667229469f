/** Runs the driver of gRPC load (`grpc-driver.ts`) as a process of its own. */
import { spawn } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const driver = join(dirname(fileURLToPath(import.meta.url)), "grpc-driver.js");

/** What the driver prints. */
export interface DriverReport {
  readonly operations: number;
  readonly operationsPerSecond: number;
  readonly outcomes: Readonly<Record<string, number>>;
  readonly errors: number;
  readonly latencyMs: { readonly p50: number; readonly p99: number; readonly p999: number };
}

/** `flags`: as the driver takes them, without address and seconds. Rejects when it fails. */
export function drive(
  address: string,
  seconds: number,
  flags: readonly string[],
): Promise<DriverReport> {
  return new Promise((resolve, reject) => {
    const all = [driver, "--address", address, "--seconds", String(seconds), ...flags];
    const child = spawn(process.execPath, all, { stdio: ["ignore", "pipe", "inherit"] });
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
    child.on("close", (code) => {
      if (code === 0) resolve(JSON.parse(output) as DriverReport);
      else reject(new Error(`the driver ended with ${String(code)}: ${output}`));
    });
  });
}
