/** The systemd unit: systemd finds no fault in it, and the server takes its settings. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { readFlags } from "../../src/server/flags/flags.js";
import { readText, root } from "../tidy/sources.js";

const unit = readText("scripts/deploy/systemd/svc-server.service");

t.test("systemd finds no fault in the unit", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "svc-unit-"));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "svc-server.service");
  const program = join(root, "dist/bin/svc-server.js");
  const here = unit
    .replace("/opt/svc/dist/bin/svc-server.js", program)
    .replace("/usr/bin/node", process.execPath);
  t.ok(here.includes(program) && here.includes(process.execPath), "it starts the server");
  writeFileSync(path, here);
  const verify = (): { readonly missing: boolean; readonly text: string } => {
    const { error, stdout, stderr } = spawnSync("systemd-analyze", ["verify", path], {
      encoding: "utf8",
    });
    return { missing: error !== undefined, text: `${stdout}${stderr}` };
  };
  const { missing, text } = verify();
  if (missing) t.pass("skipped: systemd-analyze is not installed");
  else {
    t.notMatch(text, /svc-server/, "nothing is said of it");
    writeFileSync(path, here.replace("TimeoutStopSec", "TimeoutStopSecs"));
    t.match(verify().text, /TimeoutStopSecs/, "a member that does not exist is told");
  }
  t.end();
});

t.test(
  "its settings are ones that the server takes, and the stop has the time that it takes",
  (t) => {
    const lines = readText("scripts/deploy/systemd/server.env").split("\n");
    const settings = Object.fromEntries(
      lines
        .filter((line) => line !== "" && !line.startsWith("#"))
        .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
    );
    const read = readFlags([], settings);
    t.ok(read.ok, read.ok ? "" : read.message);
    t.ok(Object.keys(settings).length > 10);
    const [, seconds = "0"] = /^TimeoutStopSec=(\d+)$/m.exec(unit) ?? [];
    t.ok(Number(seconds) >= 2 * (5 + 10 + 5.5), "twice delay, shutdown timeout and a hung disk");
    t.match(unit, /^SystemCallFilter=@system-service @pkey$/m, "without @pkey Node is killed");
    t.end();
  },
);
