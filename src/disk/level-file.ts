/**
 * The level file of a data directory: the highest level that anything in its log or state store may
 * be of, and which version of the program wrote it.
 *
 * It is read before anything else is opened, so that a program which does not support the level
 * ends without having written a byte (contract 5.5 U4), and raised before anything of a higher
 * level is written. Its members keep their meaning in all releases. Invariants: 1. It is written
 * aside and renamed; its directory is synced before `raise` is done. 2. The level never falls. 3. A
 * directory without the file is of the first level.
 */
import { assert } from "../base/assert.js";
import { decodeText, encodeText } from "../base/bytes.js";
import { FIRST_LEVEL } from "../base/ids.js";
import { PROGRAM, type Program, RANGE_END, type StoredLevel, levelFault } from "../base/levels.js";
import { PROGRAM_VERSION_MAX_BYTES } from "../base/limits.js";
import { type Result, failure, ok } from "../base/result.js";
import type { FileErrorCode, FilesPort, LevelPort, TimerPort } from "../ports.js";

/** "storage-level": the program does not support the level of the data. */
export type LevelFileCode = "storage-level" | "storage-damaged" | "storage-unreadable";

const LEVEL_FILE_VERSION = 1;
const KIND = "svc-level";
const FILE_MAX_BYTES = 4096;
const NAME = "level.json";
const DRAFT = `${NAME}.new`;

function contentOf({ level, version }: StoredLevel): Uint8Array {
  const content = { kind: KIND, version: LEVEL_FILE_VERSION, level, program: version };
  return encodeText(`${JSON.stringify(content)}\n`);
}

/** What the file says; null when it is damaged. What a later version added is passed over. */
function parse(bytes: Uint8Array): StoredLevel | null {
  let parsed: unknown;
  try {
    parsed = JSON.parse(decodeText(bytes) ?? "");
  } catch {
    return null;
  }
  if (typeof parsed !== "object" || parsed === null) return null;
  const { kind, level, program } = parsed as Readonly<Record<string, unknown>>;
  if (kind !== KIND || typeof level !== "number" || typeof program !== "string") return null;
  const isLevel = Number.isInteger(level) && level >= 1 && level <= RANGE_END;
  if (!isLevel || program.length > PROGRAM_VERSION_MAX_BYTES) return null;
  return { level, version: program };
}

type Opened = (result: Result<LevelFile, LevelFileCode>) => void;

export class LevelFile implements LevelPort {
  private isRaising = false;

  private constructor(
    private readonly directory: string,
    private readonly program: Program,
    private readonly files: FilesPort,
    private current: number,
  ) {}

  /**
   * Reads the file of `directory`, and nothing else. Refuses what `program` does not support.
   * `isNew`: the directory holds nothing yet.
   */
  static open(
    directory: string,
    program: Program,
    files: FilesPort,
    isNew: boolean,
    done: Opened,
  ): void {
    const path = `${directory}/${NAME}`;
    const judge = (stored: StoredLevel): void => {
      const fault = isNew ? null : levelFault(stored, program);
      if (fault !== null) return done(failure("storage-level", `${directory}: ${fault}`));
      done(ok(new LevelFile(directory, program, files, stored.level)));
    };
    files.open(path, "read", (found) => {
      if (!found.ok && found.code === "missing") return judge({ level: FIRST_LEVEL, version: "" });
      if (!found.ok) return done(failure("storage-unreadable", found.message));
      const bytes = new Uint8Array(FILE_MAX_BYTES);
      files.read(found.value, 0, bytes, (read) => {
        files.close(found.value, () => {
          if (!read.ok) return done(failure("storage-unreadable", read.message));
          const stored = parse(bytes.subarray(0, read.value));
          if (stored === null) {
            const remedy = "restore the file from a copy, or start this node empty";
            return done(failure("storage-damaged", `${path} is damaged; ${remedy}`));
          }
          judge(stored);
        });
      });
    });
  }

  get level(): number {
    return this.current;
  }

  raise(level: number, done: (result: Result<null, FileErrorCode>) => void): void {
    assert(level > this.current, "a level only rises");
    assert(!this.isRaising, "a level is raised once at a time");
    this.isRaising = true;
    const end = (result: Result<null, FileErrorCode>): void => {
      this.isRaising = false;
      if (result.ok) this.current = level;
      done(result);
    };
    const { directory, files } = this;
    const draft = `${directory}/${DRAFT}`;
    const content = contentOf({ level, version: this.program.version });
    // What a raise left that did not come to its end.
    files.remove(draft, (removed) => {
      if (!removed.ok && removed.code !== "missing") return end(removed);
      files.allocate(draft, content.length, content, (made) => {
        if (!made.ok) return end(made);
        files.rename(draft, `${directory}/${NAME}`, (renamed) => {
          if (!renamed.ok) return end(renamed);
          files.syncDirectory(directory, end);
        });
      });
    });
  }
}

/** Of a node whose data is in memory. */
export class MemoryLevel implements LevelPort {
  level: number = PROGRAM.levels.min;

  constructor(private readonly timers: TimerPort) {}

  raise(level: number, done: (result: Result<null, FileErrorCode>) => void): void {
    this.level = level;
    this.timers.soon(() => done(ok(null)));
  }
}
