/**
 * A process that writes log and store as fast as it can and tells what is durable, until it is
 * killed.
 *
 * Arguments: data directory. Prints one line per acknowledgement: "log GROUP INDEX" or "store
 * COUNT". Invariants: 1. A line is printed only after the callback came. 2. Printing is
 * synchronous.
 */
import { writeSync } from "node:fs";
import { partitionId } from "../../../src/base/ids.js";
import { type Disk, openDisk } from "../../../src/disk/open.js";
import { PROGRAM } from "../../../src/base/levels.js";
import { createKernels } from "../../../src/wasm/kernels.js";
import { bytes } from "../../conformance/store.js";
import { diskPorts } from "../../doubles/disk/realports.js";

const GROUPS = 3;

function say(line: string): void {
  writeSync(1, `${line}\n`);
}

function payload(group: number, index: number): Uint8Array {
  return bytes(`${String(group)}:${String(index)}:${"x".repeat((index * 37) % 3000)}`);
}

function run(disk: Disk): void {
  say("open");
  for (let at = 1; at <= GROUPS; at++) {
    const group = partitionId(at);
    let last = disk.log.recovered().get(group)?.lastIndex ?? 0;
    const put = (): void => {
      const index = ++last;
      const entries = [{ index, term: 1, kind: 0, payload: payload(at, index) }];
      const hardState = index % 10 === 0 ? { term: 1, vote: 1, commit: index - 1 } : null;
      const done = (): void => {
        say(`log ${String(at)} ${String(index)}`);
        if (index % 50 === 0) disk.log.raiseFloor(group, { index: index - 20, term: 1 });
        put();
      };
      disk.log.write({ group, hardState, entries, done });
    };
    put();
  }
  const stored = disk.store.get(bytes("count"));
  let count = stored === null ? 0 : Number(String.fromCharCode(...stored));
  const flush = (): void => {
    count++;
    const value = bytes(String(count));
    const long = new Uint8Array(1500).fill(200);
    const changes = [
      { key: bytes("count"), value },
      { key: bytes(`row${String(count % 100).padStart(3, "0")}`), value },
      { key: long, value },
    ];
    disk.store.write(changes, (result) => {
      if (!result.ok) throw new Error(result.code);
      say(`store ${String(count)}`);
      flush();
    });
  };
  flush();
}

const path = process.argv[2] ?? "";
const options = {
  adapter: "lmdb",
  path,
  revision: "v1",
  walPath: null,
  maxBytes: 2 ** 30,
  identity: { clusterId: "kill", nodeId: 1 },
  kernels: createKernels({ mode: "wasm" }),
  program: PROGRAM,
  segmentBytes: 2 ** 20,
} as const;
openDisk(options, diskPorts(), (result) => {
  if (result.ok) run(result.value);
  else {
    say(`${result.code} ${result.message}`);
    process.exit(3);
  }
});
