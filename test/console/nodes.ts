/**
 * Three real nodes that know their callers by tokens, and what is in them for a console to show.
 */
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  foundersOf,
  freePorts,
  nodeFlags,
  ServerProcess,
  temporaryDirectory,
} from "../process/cluster/server-process.js";
import { tokenDigestText } from "../../src/server/security/tokens.js";

export const ROLES = ["reader", "writer", "admin"] as const;
export type Role = (typeof ROLES)[number];

export function tokenOf(role: Role): string {
  return `the-token-of-the-${role}`;
}

/** A file that nobody else may read. */
function privateFile(path: string, text: string): string {
  writeFileSync(path, text);
  chmodSync(path, 0o600);
  return path;
}

export class ConsoleNodes {
  private constructor(
    readonly servers: readonly ServerProcess[],
    /** http://host:port of each. */
    readonly bases: readonly string[],
    /** https://host:port of the first one's console. */
    readonly own: string,
    private readonly directory: { remove(): void },
  ) {}

  static async start(): Promise<ConsoleNodes> {
    const directory = temporaryDirectory();
    const path = (name: string): string => join(directory.path, name);
    const lines = ROLES.map((role) => `${role} ${role} ${tokenDigestText(tokenOf(role))}`);
    const tokens = privateFile(path("tokens"), `${lines.join("\n")}\n`);
    const secret = privateFile(path("secret"), "a secret that is long enough for peers");
    mkdirSync(path("backups"), { mode: 0o700 });
    const ports = await freePorts(3);
    const servers = ports.map((port, at) => {
      const more = [
        `--raft-nodeid=${at + 1}`,
        `--peer-port=${port}`,
        `--initial-cluster=${foundersOf(ports)}`,
        `--auth-tokens-file=${tokens}`,
        `--peer-secret-file=${secret}`,
        `--pitr-backup-dir=${path("backups")}`,
        // Where nobody hears of a lost leader for long, a test waits for long.
        "--raft-start-election-timeout=600ms",
        "--raft-end-election-timeout=1200ms",
        ...(at === 0 ? ["--console-port=0"] : []),
      ];
      return new ServerProcess(nodeFlags(path(`node-${at + 1}`), ...more));
    });
    const addresses = await Promise.all(servers.map((server) => server.ready()));
    const bases = addresses.map(({ http }) => `http://${http}`);
    const own = / console=(\S+)/.exec(servers[0]?.output ?? "")?.[1] ?? "";
    return new ConsoleNodes(servers, bases, `https://${own}`, directory);
  }

  async post(path: string, body: object): Promise<Record<string, unknown>> {
    const answer = await fetch(`${this.bases[0]}${path}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${tokenOf("admin")}`,
        "content-type": "application/json",
      },
      body: JSON.stringify(body),
    });
    const text = await answer.text();
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${text}`);
    return JSON.parse(text) as Record<string, unknown>;
  }

  async set(key: string, value: string | Buffer): Promise<void> {
    const encoded = Buffer.from(value).toString("base64");
    await this.post("/v1/kv/try-set", { key, value: encoded, durability: 1 });
  }

  async setMany(keys: readonly string[], value: string): Promise<void> {
    const encoded = Buffer.from(value).toString("base64");
    const items = keys.map((key) => ({ key, value: encoded, durability: 1 }));
    await this.post("/v1/kv/try-set-many", { items });
  }

  async lock(resource: string, owner: string): Promise<void> {
    await this.post("/v1/locks/try-lock", { resource, owner, expiresMs: 600_000, durability: 1 });
  }

  async end(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.kill()));
    this.directory.remove();
  }
}
