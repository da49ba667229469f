/** The table of levels and protocols holds what the code writes, no more and no less. */
import t from "tap";
import {
  type NumberRange,
  PROGRAM,
  SINCE,
  highestCommon,
  levelFault,
  programMismatch,
  rangeText,
} from "../../../src/base/levels.js";
import { VERSION } from "../../../src/base/generated/version.js";
import { CALL_LIST } from "../../../src/api/calls.js";
import {
  GROUP_COMMANDS,
  HEIR_COMMANDS,
  KV_COMMANDS,
  LOCK_COMMANDS,
  RANGE_COMMANDS,
  SEQUENCE_COMMANDS,
} from "../../../src/machine/commands/command.js";
import { META_COMMANDS } from "../../../src/machine/commands/meta-codec.js";
import { KINDS } from "../../../src/operations/api/kinds.js";
import { readText, trackedFiles } from "../../tidy/sources.js";

type SinceByVersion = Readonly<Record<number, number>>;

/** Where the code says which version of a format it writes. */
const CONSTANTS: Readonly<Record<string, readonly string[]>> = {
  entry: ["src/machine/commands/codec.ts ENTRY_VERSION"],
  "configuration entry": ["src/host/replication/config-entries.ts CHANGE_VERSION"],
  "configuration of a group": ["src/host/replication/config-entries.ts VERSION"],
  "group record": ["src/machine/commands/group-record.ts VERSION"],
  "cluster row": ["src/machine/meta/meta-rows.ts VERSION_2"],
  "member row": ["src/machine/meta/meta-rows.ts VERSION_3"],
  "former member row": ["src/machine/meta/meta-rows.ts VERSION"],
  "partition row": ["src/machine/meta/meta-rows.ts VERSION_4"],
  "range row": ["src/machine/meta/meta-rows.ts VERSION_2"],
  "leaving key space row": ["src/machine/meta/range-rows.ts VERSION"],
  "planner hold row": ["src/machine/meta/planner-holds.ts VERSION"],
  "range move row": ["src/machine/meta/range-rows.ts VERSION"],
  "lock row": ["src/machine/locks/lock-row.ts VERSION"],
  "lock audit row": ["src/machine/locks/lock-audit-row.ts VERSION"],
  "lock audit head row": ["src/machine/locks/lock-audit-row.ts HEAD_VERSION"],
  "sequence row": ["src/machine/sequences/sequence-row.ts VERSION"],
  "allocation row": ["src/machine/sequences/sequence-row.ts VERSION"],
  "value row": ["src/machine/kv/kv-row.ts VERSION"],
  "ownership row": ["src/machine/ownership/ownership-row.ts VERSION"],
  "snapshot chunk": ["src/machine/snapshot/format.ts VERSION"],
  "log segment": ["src/disk/log/records.ts LOG_FORMAT_VERSION"],
  "data directory": ["src/disk/data-directory.ts STORAGE_FORMAT_VERSION"],
  "replica of a node": ["src/host/storage/replica-row.ts VERSION"],
  "level file": ["src/disk/level-file.ts LEVEL_FILE_VERSION"],
  "identity of a node": ["src/host/storage/identity.ts VERSION"],
  "known peers": ["src/host/cluster/known-peers.ts VERSION"],
  handshake: ["src/net/packets.ts VERSION"],
  "raft frame": ["src/host/replication/raft-frames.ts VERSION"],
  "snapshot frame": ["src/host/snapshots/snapshot-frames.ts VERSION"],
  "call frame": ["src/operations/wire/frames.ts VERSION"],
  "node report": ["src/host/reports/node-report.ts VERSION"],
  "backup frame": ["src/host/backups/backup-messages.ts VERSION"],
};

/** Numbers of versions that no cluster agrees on. */
const APART: readonly string[] = [
  "src/machine/kv/cursor.ts VERSION", // of a page, which comes back to this node or is refused
  "src/client/metadata/route-cache.ts SCHEMA_VERSION", // of the public interface
  "src/backup/manifest.ts MANIFEST_VERSION", // of a backup: who reads one says what it can read
  "src/backup/origin.ts ARTIFACT_VERSION", // likewise
  "src/host/restoring/claims.ts VERSION", // of a restore, beside the backups: likewise
  "src/host/restoring/restored-mark.ts VERSION", // of a restored directory: who starts on it says what it can read
  "src/disk/data-directory.ts RESTORED_VERSION", // the newest of these that a start reads
  "src/disk/forcing.ts VERSION", // of an act that one program begins and ends while the node is stopped
  "src/disk/differed-file.ts VERSION", // of a note of this node about itself: an unreadable one counts as one
  "src/host/restoring/staged-state.ts FIRST_VERSION", // of a roster, not of a format
];

const VERSION_LINE = /^(?:export )?const ((?:[A-Z0-9_]+_)?VERSION(?:_\d+)?) = (\d+);/gm;

/** Every such constant of src/, with its number. */
function versionConstants(): Map<string, number> {
  const found = new Map<string, number>();
  for (const path of trackedFiles()) {
    if (!path.startsWith("src/") || !path.endsWith(".ts")) continue;
    for (const [, name, number] of readText(path).matchAll(VERSION_LINE)) {
      found.set(`${path} ${name as string}`, Number(number));
    }
  }
  return found;
}

function newest(versions: SinceByVersion): number {
  return Math.max(...Object.keys(versions).map(Number));
}

t.test("P-030 the table has every version constant of the code, with its number", (t) => {
  const formats: Readonly<Record<string, SinceByVersion>> = {
    ...SINCE.stored,
    ...SINCE.spoken,
  };
  t.strictSame(Object.keys(CONSTANTS).sort(), Object.keys(formats).sort(), "each has its place");
  const found = versionConstants();
  for (const [format, places] of Object.entries(CONSTANTS)) {
    for (const place of places) {
      const versions = formats[format] ?? {};
      t.equal(found.get(place), newest(versions), `${format}: ${place}`);
    }
  }
  const listed = new Set([...Object.values(CONSTANTS).flat(), ...APART]);
  t.strictSame(
    [...found.keys()].filter((place) => !listed.has(place)),
    [],
    "none is left out",
  );
  t.strictSame(
    [...listed].filter((place) => !found.has(place)),
    [],
    "none is gone",
  );
  t.end();
});

t.test("P-030 the table has every command with its newest version", (t) => {
  const locks = [LOCK_COMMANDS, HEIR_COMMANDS];
  const data = [...locks, SEQUENCE_COMMANDS, KV_COMMANDS, RANGE_COMMANDS];
  const codecs = [...data, GROUP_COMMANDS, META_COMMANDS];
  const written = codecs.flatMap((family) => {
    return Object.entries(family).map(([name, { version }]): [string, number] => [name, version]);
  });
  const listed = Object.entries(SINCE.commands).map(([name, versions]): [string, number] => {
    return [name, newest(versions)];
  });
  t.strictSame(new Map(listed), new Map(written));
  t.end();
});

t.test("P-030 the table has every operation", (t) => {
  const operations = [...Object.keys(KINDS), ...CALL_LIST.map(([name]) => name)];
  t.strictSame(new Set(Object.keys(SINCE.operations)), new Set(operations));
  t.end();
});

t.test("P-030 since-numbers ascend with the versions, and are levels or protocols", (t) => {
  const check = (table: Readonly<Record<string, SinceByVersion>>): void => {
    for (const [name, versions] of Object.entries(table)) {
      const sinces = Object.values(versions);
      t.ok(sinces.length > 0 && sinces.every((since) => since >= 1), name);
      t.strictSame(
        sinces,
        [...sinces].sort((a, b) => a - b),
        name,
      );
    }
  };
  check(SINCE.commands);
  check(SINCE.stored);
  check(SINCE.spoken);
  t.end();
});

t.test("U1 the program supports its level and at most that of the release before", (t) => {
  const { levels, protocols } = PROGRAM;
  t.ok(levels.min >= 1 && levels.max >= levels.min && levels.max - levels.min <= 1);
  t.ok(protocols.min >= 1 && protocols.max >= protocols.min);
  t.equal(PROGRAM.version, VERSION);
  t.end();
});

t.test("U4 which level cannot be used, and which version can", (t) => {
  const program = { ...PROGRAM, levels: { min: 5, max: 6 } };
  const releases = ["0.1", "0.2", "0.4", "0.5", "0.8", "0.9"];
  const fault = (level: number): string | null => {
    return levelFault({ level, version: "1.0" }, program, releases);
  };
  t.equal(fault(7), "data is of level 7, this program supports 5 to 6: use version 1.0 or later");
  t.equal(fault(6), null);
  t.equal(fault(5), null);
  t.equal(
    fault(4),
    "data is of level 4, this program supports 5 to 6: upgrade through version 0.8 first",
  );
  t.equal(
    fault(2),
    "data is of level 2, this program supports 5 to 6: upgrade through version 0.4 first",
  );
  t.equal(levelFault({ level: PROGRAM.levels.max, version: "" }, PROGRAM), null);
  t.end();
});

t.test("U7 what two programs have in common", (t) => {
  const range = (min: number, max: number): NumberRange => ({ min, max });
  t.equal(highestCommon(range(1, 2), range(2, 3)), 2);
  t.equal(highestCommon(range(4, 4), range(3, 9)), 4);
  t.equal(highestCommon(range(1, 2), range(3, 4)), null);
  t.equal(highestCommon(range(3, 4), range(1, 2)), null);
  t.equal(rangeText(range(5, 6)), "5 to 6");
  t.equal(rangeText(range(5, 5)), "5");
  const other = {
    ...PROGRAM,
    protocols: range(PROGRAM.protocols.max + 1, PROGRAM.protocols.max + 1),
  };
  t.equal(programMismatch(PROGRAM, PROGRAM), null);
  t.equal(programMismatch(PROGRAM, other), "protocol");
  t.equal(programMismatch(other, { ...other, levels: range(9, 9) }), "level");
  t.end();
});
