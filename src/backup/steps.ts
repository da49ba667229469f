/**
 * Calls of the archive one after the other, up to the first that fails.
 *
 * Invariant: a step begins after the one before it has succeeded; the rest is never begun.
 */
import { concatBytes } from "../base/bytes.js";
import { type Result, ok } from "../base/result.js";
import type { ArchiveErrorCode, ArchivePort, ArchiveResult, ArchiveWriter } from "../ports.js";

export type Step = (done: (result: Result<unknown, ArchiveErrorCode>) => void) => void;

/** Runs the steps in order. */
export function inOrder(steps: readonly Step[], done: (result: ArchiveResult<null>) => void): void {
  const next = (at: number): void => {
    const step = steps[at];
    if (step === undefined) return done(ok(null));
    step((result) => {
      if (!result.ok) return done(result);
      next(at + 1);
    });
  };
  next(0);
}

/** Writes a new file with this content, durable but for its name. */
export function writeFile(
  archive: ArchivePort,
  path: string,
  bytes: Uint8Array,
  done: (result: ArchiveResult<null>) => void,
): void {
  archive.create(path, (created) => {
    if (!created.ok) return done(created);
    const writer: ArchiveWriter = created.value;
    writer.write(bytes, (written) => {
      if (!written.ok) return writer.abandon(() => done(written));
      writer.finish((finished) => done(finished.ok ? ok(null) : finished));
    });
  });
}

/** All of a file, unless it has more than `maxBytes`: then as much and a byte. */
export function readFile(
  archive: ArchivePort,
  path: string,
  maxBytes: number,
  done: (result: ArchiveResult<Uint8Array>) => void,
): void {
  archive.open(path, (opened) => {
    if (!opened.ok) return done(opened);
    const reader = opened.value;
    const parts: Uint8Array[] = [];
    let size = 0;
    const end = (result: ArchiveResult<Uint8Array>): void => reader.close(() => done(result));
    const next = (): void => {
      reader.read(Math.min(maxBytes + 1 - size, 256 * 1024), (slice) => {
        if (!slice.ok) return end(slice);
        parts.push(slice.value);
        size += slice.value.length;
        if (slice.value.length > 0 && size <= maxBytes) return next();
        end(ok(concatBytes(...parts)));
      });
    };
    next();
  });
}
