/** Files of a data directory that a false disk can hold: segments of the log, and the level. */
import { partitionId } from "../../../src/base/ids.js";
import { PROGRAM } from "../../../src/base/levels.js";
import { LevelFile } from "../../../src/disk/level-file.js";
import type { HardState, LogEntry } from "../../../src/ports.js";
import { FakeDisk, Steps } from "../../doubles/disk/fakedisk.js";
import {
  type Machine,
  bytesOf,
  close,
  entries,
  machine,
  open,
  read,
  restart,
  write,
} from "../../doubles/disk/fixture.js";
import { type Format, format } from "./format.js";

/** One write of a group. */
interface Written {
  readonly group: number;
  readonly hardState: HardState;
  readonly entries: readonly LogEntry[];
}

/** What lies before the zeros that fill a file. */
function withoutPadding(bytes: Uint8Array): Uint8Array {
  let end = bytes.length;
  while (end > 0 && bytes[end - 1] === 0) end--;
  return bytes.subarray(0, end);
}

/** The first segment of a log of these writes. */
function writeSegment(writes: readonly Written[]): Uint8Array {
  const on = machine();
  const log = open(on);
  for (const { group, hardState, entries: list } of writes) write(on, log, group, list, hardState);
  const bytes = Uint8Array.from(withoutPadding(bytesOf(on, 1)));
  close(on, log);
  return bytes;
}

/** A machine whose log has `bytes` for its first segment. */
function withSegment(bytes: Uint8Array): Machine {
  const empty = machine();
  close(empty, open(empty));
  const segment = bytesOf(empty, 1);
  segment.fill(0);
  segment.set(bytes);
  return restart(empty);
}

function readSegment(bytes: Uint8Array): readonly Written[] {
  const on = withSegment(bytes);
  const log = open(on);
  const found = [...log.recovered().values()].map(({ group, hardState, floor, lastIndex }) => {
    const list = read(on, log, group, floor.index + 1, lastIndex);
    if (list === "compacted") throw new Error("the entries are there");
    return { group: Number(group), hardState, entries: list };
  });
  close(on, log);
  return found.sort((one, other) => one.group - other.group);
}

interface LevelSaid {
  readonly level: number;
  readonly version: string;
}

const HOME = "/home";
const FILE = `${HOME}/level.json`;

function opened(disk: FakeDisk, max: number, version = ""): LevelFile | string {
  const program = { ...PROGRAM, levels: { min: 1, max }, version };
  let answer: LevelFile | string = "";
  LevelFile.open(HOME, program, disk, false, (result) => {
    answer = result.ok ? result.value : result.message;
  });
  disk.steps.run();
  return answer;
}

function writeLevel({ level, version }: LevelSaid): Uint8Array {
  const disk = new FakeDisk(new Steps());
  const file = opened(disk, level, version);
  if (typeof file === "string") throw new Error(file);
  file.raise(level, () => undefined);
  disk.steps.run();
  return disk.names.get(FILE)?.bytes ?? new Uint8Array();
}

function readLevel(bytes: Uint8Array): LevelSaid {
  const disk = new FakeDisk(new Steps());
  disk.names.set(FILE, { bytes: Uint8Array.from(bytes) });
  const refused = opened(disk, 1);
  const [, level, version] =
    /level (\d+), .* use version (.*) or later/.exec(String(refused)) ?? [];
  return { level: Number(level), version: version ?? String(refused) };
}

export const FILE_FORMATS: Readonly<Record<string, Format>> = {
  "log segment": format(
    1,
    [
      [
        { group: 0, hardState: { term: 1, vote: 1, commit: 0 }, entries: entries(1, 3, 1) },
        {
          group: partitionId(7),
          hardState: { term: 2 ** 40, vote: 65_000, commit: 5 },
          entries: entries(1, 6, 2, 300),
        },
      ],
    ],
    writeSegment,
    readSegment,
  ),
  "level file": format(1, [{ level: 2, version: "0.1.0" }], writeLevel, readLevel),
};
