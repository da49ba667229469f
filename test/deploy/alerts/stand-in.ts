/**
 * Figures of a node that is not there, in the format of a scrape: for conditions that cannot be brought about within minutes.
 *
 * Invariants: 1. It shows what was put, and nothing else. 2. Only families that a node has are put: docs/metrics.md names them.
 */
import { type Server, createServer } from "node:http";
import { describedFamilies } from "../monitoring.js";

const KNOWN = describedFamilies();

export class StandIn {
  private readonly server: Server;
  private readonly series = new Map<string, number>();

  private constructor() {
    this.server = createServer((_request, response) => {
      const lines = [...this.series].map(([name, value]) => `${name} ${value}\n`);
      response.setHeader("content-type", "text/plain; version=0.0.4");
      response.end(lines.join(""));
    });
  }

  static async listen(port: number): Promise<StandIn> {
    const standIn = new StandIn();
    await new Promise<void>((resolve) => {
      standIn.server.listen(port, "127.0.0.1", resolve);
    });
    return standIn;
  }

  /** `name`: with its labels. */
  put(name: string, value: number): void {
    const family = name.replace(/\{.*/, "");
    if (!KNOWN.has(family)) throw new Error(`no node has ${family}`);
    this.series.set(name, value);
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }
}
