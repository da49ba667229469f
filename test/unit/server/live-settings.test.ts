/** Settings that files stand for: read at the start, read anew, and kept when they are wrong. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { makeConfig } from "../../../src/server/flags/config.js";
import { readFlags } from "../../../src/server/flags/flags.js";
import type { ServerConfig } from "../../../src/server/flags/server-config.js";
import { LiveSettings } from "../../../src/server/live-settings.js";

const folder = mkdtempSync(join(tmpdir(), "svc-live-"));
t.teardown(() => rmSync(folder, { recursive: true, force: true }));
const path = (name: string): string => join(folder, name);

function configured(...flags: readonly string[]): ServerConfig | string {
  const raw = readFlags(flags, {});
  const config = raw.ok ? makeConfig(raw.value, {}) : raw;
  return config.ok ? config.value : config.message;
}

t.test("10.8 a file stands for a value where its flag says @", (t) => {
  writeFileSync(path("level"), "debug\n");
  writeFileSync(path("slow"), " 250ms ");
  writeFileSync(path("rate"), "17");
  t.match(
    configured(
      `--log-level=@${path("level")}`,
      `--slow-request-threshold=@${path("slow")}`,
      `--caller-rate-limit=@${path("rate")}`,
    ),
    { logLevel: "debug", slowRequestMs: 250, callerRateLimit: 17 },
  );
  t.match(configured(), { slowRequestMs: 1000, callerRateLimit: 0, liveFiles: {} });
  writeFileSync(path("level"), "loud");
  t.match(configured(`--log-level=@${path("level")}`), /--log-level: "loud" is not one of debug/);
  t.match(configured(`--log-level=@${path("none")}`), /--log-level: ENOENT/);
  t.match(configured("--raft-nodename=@x"), { nodeName: "@x" }, "no other flag");
  t.match(configured("--caller-rate-limit=-1"), /--caller-rate-limit -1 must be from 0/);
  t.end();
});

t.test("10.8 changes are taken over one by one, a mistake keeps what was", (t) => {
  for (const [name, text] of [
    ["level", "info"],
    ["slow", "1s"],
    ["rate", "0"],
  ] as const) {
    writeFileSync(path(name), text);
  }
  const applied: string[] = [];
  const told: string[] = [];
  const live = new LiveSettings(
    {
      "--log-level": path("level"),
      "--slow-request-threshold": path("slow"),
      "--caller-rate-limit": path("rate"),
    },
    {
      logLevel: (level) => void applied.push(`level ${level}`),
      slowRequestMs: (ms) => void applied.push(`slow ${ms}`),
      callerRateLimit: (rate) => void applied.push(`rate ${rate}`),
    },
    (what, mistake, fields) => void told.push(`${what}: ${mistake ?? fields?.value}`),
  );
  t.teardown(() => live.close());
  live.reload();
  t.same([applied, told], [[], []], "nothing changed");
  writeFileSync(path("level"), "debug");
  writeFileSync(path("slow"), "soon");
  writeFileSync(path("rate"), "20\n");
  live.reload();
  t.same(applied, ["level debug", "rate 20"]);
  t.equal(told[0], "log-level: debug");
  t.match(told[1], /^slow-request-threshold: .*"soon" is not a duration/);
  t.equal(told[2], "caller-rate-limit: 20");
  writeFileSync(path("slow"), "0");
  writeFileSync(path("rate"), "5000000000");
  live.reload();
  t.same(applied.slice(2), ["slow 0"]);
  t.match(told[4], /must be from 0 to 1000000000/);
  rmSync(path("rate"));
  live.reload();
  t.match(told.at(-1), /caller-rate-limit: .*ENOENT/);
  live.close();
  t.end();
});
