/**
 * The write-ahead log: conformance of all three logs, and its behaviour under each named fault.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { RealFiles } from "../../../src/disk/files.js";
import { MemoryLog } from "../../../src/disk/log/memorylog.js";
import { openLog } from "../../../src/disk/log/recovery.js";
import { systemTimers } from "../../../src/sys.js";
import { createKernels } from "../../../src/wasm/kernels.js";
import { type LogHarness, logConformance } from "../../conformance/log.js";
import { IDENTITY, machine, open, portsOf, restart } from "../../doubles/disk/fixture.js";
import "./directwrites.js";
import "./logdamage.js";
import "./logpower.js";
import "./logspace.js";
import "./soon.js";

function waiting<T>(start: (done: (value: T) => void) => void): Promise<T> {
  return new Promise((resolve) => start(resolve));
}

function fakeHarness(): LogHarness {
  let on = machine();
  let isFirst = true;
  return {
    survives: true,
    open() {
      if (!isFirst) on = restart(on);
      isFirst = false;
      return Promise.resolve(open(on));
    },
    call<T>(start: (done: (value: T) => void) => void): Promise<T> {
      const answer = waiting(start);
      on.steps.run();
      return answer;
    },
    finish() {
      return Promise.resolve();
    },
  };
}

function realHarness(): LogHarness {
  const directory = mkdtempSync(join(tmpdir(), "svc-log-"));
  const options = {
    directory,
    identity: IDENTITY,
    segmentBytes: 1024 * 1024,
    spaceRetryMs: 50,
    mayCreate: true,
  };
  return {
    survives: true,
    open: () =>
      new Promise((resolve, reject) => {
        const ports = { ...portsOf(machine()), files: new RealFiles(), timers: systemTimers };
        openLog(options, ports, createKernels({ mode: "wasm" }), (result) => {
          if (result.ok) resolve(result.value);
          else reject(new Error(result.message));
        });
      }),
    call: waiting,
    finish() {
      rmSync(directory, { recursive: true });
      return Promise.resolve();
    },
  };
}

function memoryHarness(): LogHarness {
  return {
    survives: false,
    open: () => Promise.resolve(new MemoryLog(systemTimers)),
    call: waiting,
    finish: () => Promise.resolve(),
  };
}

logConformance(t, "log on a fake disk", fakeHarness);
logConformance(t, "log on a real disk", realHarness);
logConformance(t, "log in memory", memoryHarness);
