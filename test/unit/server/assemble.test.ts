/** A node put together and taken apart in one process: what a stop gives back, what a start refuses. */
import { appendFileSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import type { LoggerPort } from "../../../src/ports.js";
import { type RunningServer, startServer } from "../../../src/server/assemble.js";
import { type ServerConfig, makeConfig } from "../../../src/server/flags/config.js";
import { readFlags } from "../../../src/server/flags/flags.js";

const silent: LoggerPort = { log: () => undefined };

function configOf(path: string, grpcPort = "0", nodeId = "1"): ServerConfig {
  const flags = { "grpc-port": grpcPort, "raft-nodeid": nodeId, "storage-path": path };
  const texts = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
  const raw = readFlags([...texts, "--https-port=off"], {});
  if (!raw.ok) throw new Error(raw.message);
  const config = makeConfig(raw.value, {});
  if (!config.ok) throw new Error(config.message);
  return config.value;
}

async function started(config: ServerConfig): Promise<RunningServer> {
  const server = await startServer(config, silent);
  if (!server.ok) throw new Error(server.message);
  return server.value;
}

async function refusal(config: ServerConfig): Promise<string> {
  const server = await startServer(config, silent);
  return server.ok ? "started" : server.code;
}

function stop(server: RunningServer): Promise<void> {
  return new Promise((resolve) => server.stop(resolve));
}

t.test("P-124 P-162 a stop gives the directory back, and so does a start that fails", async (t) => {
  const path = mkdtempSync(join(tmpdir(), "svc-assemble-"));
  t.teardown(() => rmSync(path, { recursive: true, force: true }));
  const config = configOf(path);
  const first = await started(config);
  t.equal(await refusal(config), "usage", "in use");
  const port = first.addresses.grpc?.split(":").pop() ?? "";
  const elsewhere = mkdtempSync(join(tmpdir(), "svc-assemble-"));
  t.teardown(() => rmSync(elsewhere, { recursive: true, force: true }));
  const taken = configOf(elsewhere, port);
  t.equal(await refusal(taken), "usage", "the port is taken");
  await stop(await started(configOf(elsewhere)));
  await stop(first);
  t.equal(await refusal(configOf(path, "0", "7")), "usage", "another node's directory");
  await stop(await started(config));
  const segment = readdirSync(join(path, "wal")).find((name) => name.endsWith(".segment")) ?? "";
  appendFileSync(join(path, "wal", segment), "x");
  t.equal(await refusal(config), "storage", "a segment of the wrong size");
  t.equal(await refusal(config), "storage", "refused for what it is, not for a lock left behind");
});
