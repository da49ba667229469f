/**
 * The file of a debug bundle: made aside and put in its place when it is whole.
 *
 * Owns the file aside until it is in its place. Invariants: 1. What is there under the name stays
 * as it is. 2. Nobody but its owner may read it, from the first byte on. 3. After a failure nothing
 * is left.
 */
import { randomUUID } from "node:crypto";
import { existsSync, linkSync, renameSync, rmSync, statSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { usageError } from "../invocation/failures.js";
import { archived, ARCHIVE_END, type ArchivedFile } from "./ustar.js";

const FILE_MODE = 0o600;
const compress = promisify(gzip);

function there(path: string): Error {
  return usageError(`${path} is there already: a debug bundle takes no file's place`);
}

/** Throws when no bundle could be written to `path`: asking the nodes would be for nothing. */
export function checkPlace(path: string): void {
  if (existsSync(path)) throw there(path);
  const folder = dirname(path);
  const isFolder = statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true;
  if (!isFolder) throw usageError(`${folder} is no directory`);
}

/** Files that are taken in one after the other and kept compressed until they are written. */
export class BundleFile {
  private readonly parts: Buffer[] = [];

  constructor(
    private readonly path: string,
    private readonly madeMs: number,
  ) {}

  async add(files: readonly ArchivedFile[]): Promise<void> {
    // What was compressed apart may stand one behind the other.
    for (const one of files) this.parts.push(await compress(archived(one, this.madeMs)));
  }

  /** Writes it. Returns its size (bytes). */
  async write(): Promise<number> {
    this.parts.push(await compress(ARCHIVE_END));
    const whole = Buffer.concat(this.parts);
    const aside = `${this.path}.${randomUUID()}.part`;
    try {
      const handle = await open(aside, "wx", FILE_MODE);
      try {
        await handle.writeFile(whole);
        await handle.sync();
      } finally {
        await handle.close();
      }
      this.putInPlace(aside);
    } finally {
      rmSync(aside, { force: true });
    }
    return whole.length;
  }

  private putInPlace(aside: string): void {
    try {
      linkSync(aside, this.path);
    } catch {
      // There is a file by now, or the volume knows no links.
      if (existsSync(this.path)) throw there(this.path);
      renameSync(aside, this.path);
    }
  }
}
