/** A disk that fills up, a store that comes to its bound, descriptors that are used up. */
import { rmSync, writeFileSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { type Socket, connect } from "node:net";
import type { Drive, Part } from "../drive.js";
import type { Field } from "../field.js";

/** The one whose disk is small. */
const NODE = 3;
const VALUE_BYTES = 500_000;
const WRITES = 12;
const FILL_BYTES = 4 * 1024 * 1024;

let serial = 0;
const values = (field: Field): Promise<unknown> =>
  Promise.all(Array.from({ length: WRITES }, () => field.set(1, `v${serial++}`, VALUE_BYTES)));

const onDisk = ({ stage }: Field): Readonly<Record<string, string>> => ({
  "--storage-path": stage.path("small", "data"),
});
const filler = ({ stage }: Field): string => stage.path("small", "filler");
/** What else lies on the disk. More is freed at the end than was filled: so it does not look as if it went on. */
const other = ({ stage }: Field): string => stage.path("small", "other");
const OTHER_BYTES = 250 * 1024 * 1024;

async function fill(field: Field): Promise<void> {
  const file: FileHandle = await open(filler(field), "w");
  try {
    for (;;) await file.write(Buffer.alloc(FILL_BYTES, 1));
  } catch {
    // The disk is full: that is what it is for.
  } finally {
    await file.close();
  }
}

const full: Drive = {
  how: "values are stored in a node whose store may grow to 32 MiB",
  alerts: [`SvcStoreFull ${NODE}`],
  again: values,
  end: (field) => field.again(NODE, onDisk(field)),
};

/** More than an alert calls large, less than all. */
const LARGE_SHARE = 0.9;

const large: Drive = {
  how: "a node starts whose store may become little larger than it is",
  alerts: [`SvcStoreLarge ${NODE}`],
  begin: async (field) => {
    const used = await field.figure(NODE, "svc_store_used_bytes");
    const bound = { "--storage-max-bytes": String(Math.ceil(used / LARGE_SHARE)) };
    await field.again(NODE, { ...onDisk(field), ...bound });
  },
  end: (field) => field.again(NODE, onDisk(field)),
};

const volume: Drive = {
  how: "the disk of a node is filled, and the log grows",
  alerts: [`SvcSpaceShort ${NODE}`, `SvcSpaceGoneSoon ${NODE}`, `SvcLogFull ${NODE}`],
  begin: fill,
  again: values,
  end: (field) => {
    for (const path of [filler(field), other(field)]) rmSync(path);
    return field.stage.ready(NODE);
  },
};

/** So much of what it has open at rest: it starts, and has few left. */
const LIMIT_PER_OPEN = 1.25;
const SHARE = 0.94;
const held: Socket[] = [];

const descriptors: Drive = {
  how: "a node may open few files, and callers connect",
  alerts: [`SvcDescriptorsFew ${NODE}`],
  begin: async (field) => {
    const open = await field.figure(NODE, "process_open_fds");
    const limit = Math.ceil(open * LIMIT_PER_OPEN);
    const under = ["prlimit", `--nofile=${limit}:${limit}`];
    await field.again(NODE, onDisk(field), [], { under });
    const { http } = await field.stage.node(NODE).addresses();
    const [host = "", port = ""] = http.split(":");
    const missing = Math.ceil(limit * SHARE) - (await field.figure(NODE, "process_open_fds"));
    for (let at = 0; at < missing; at++) {
      held.push(connect(Number(port), host).on("error", () => undefined));
    }
  },
  end: (field) => {
    for (const socket of held.splice(0)) socket.destroy();
    return field.again(NODE, onDisk(field));
  },
};

export const STORAGE: Part = {
  name: "storage",
  flags: () => ["--initial-cluster-partitions=4"],
  disk: "size=950m",
  start: async (field) => {
    const { stage } = field;
    writeFileSync(other(field), Buffer.alloc(OTHER_BYTES));
    for (const id of [1, 2]) stage.start(id);
    stage.start(NODE, { ...onDisk(field), "--storage-max-bytes": "32MiB" });
    await stage.ready(1, 2, NODE);
  },
  drives: [full, large, volume, descriptors],
};
