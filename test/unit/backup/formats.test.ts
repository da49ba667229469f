/**
 * Images and logs of backups: what is written is read again, and nothing else is; every byte that
 * is flipped, lost or added is told, with the file and the place.
 */
import t, { type Test } from "tap";
import { equalBytes } from "../../../src/base/bytes.js";
import { Prng } from "../../../src/base/prng.js";
import { FRAME_BODY_MAX_BYTES, FrameDecoder, FrameEncoder } from "../../../src/backup/frames.js";
import { ImageDecoder, ImageEncoder } from "../../../src/backup/image-file.js";
import { LogDecoder, LogEncoder } from "../../../src/backup/log-file.js";
import { concatBytes } from "../../../src/base/bytes.js";
import { NO_PLACEMENT } from "../../../src/base/ids.js";
import { encodeEntry } from "../../../src/machine/commands/codec.js";
import type { LogEntry } from "../../../src/ports.js";
import { update } from "../../doubles/machine/bench.js";
import { SampleGroup } from "../../doubles/backup/sample-group.js";

const ID = "0123456789abcdef0123456789abcdef";

interface Decoder {
  push(slice: Uint8Array): { readonly message: string } | null;
  end(): { readonly ok: boolean; readonly code?: string; readonly message?: string };
}

/** "ok", or what a decoder says of the bytes, given in slices. */
function said(decoder: Decoder, bytes: Uint8Array, sliceBytes: number): string {
  for (let at = 0; at < bytes.length; at += sliceBytes) {
    const fault = decoder.push(bytes.subarray(at, at + sliceBytes));
    if (fault !== null) return fault.message;
  }
  const end = decoder.end();
  return end.ok ? "ok" : `${end.message}`;
}

function sampleImage(): { group: SampleGroup; bytes: Uint8Array; chunks: Uint8Array[] } {
  const group = new SampleGroup(7);
  group.write(11);
  group.apply([update("sequence-1", { increment: 5n })]);
  const { head, chunks } = group.image(ID);
  const encoder = new ImageEncoder();
  const parts = [encoder.head(head), ...chunks.map((chunk) => encoder.chunk(chunk))];
  return { group, bytes: concatBytes(...parts, encoder.trailer()), chunks };
}

interface SampleLog {
  readonly group: SampleGroup;
  readonly bytes: Uint8Array;
  readonly entries: readonly LogEntry[];
}

function sampleLog(change: (entries: LogEntry[]) => void = () => undefined): SampleLog {
  const group = new SampleGroup(7);
  group.write(4);
  const before = group.place();
  group.write(5);
  group.newTerm();
  group.write(3);
  group.mark(ID);
  const entries = group.since(before.index);
  const encoder = new LogEncoder();
  const head = encoder.head({ origin: group.origin(ID), before });
  const written = [...entries];
  change(written);
  const body = [written.slice(0, 3), written.slice(3)].map((some) => encoder.entries(some));
  return { group, bytes: concatBytes(head, ...body, encoder.trailer(group.trailer())), entries };
}

t.test("an image is read as it was written, wherever its slices end", (t) => {
  const { group, bytes, chunks } = sampleImage();
  t.ok(chunks.length > 3, "several chunks");
  for (const slice of [1, 2, 5, 64, 4096, bytes.length]) {
    const seen: Uint8Array[] = [];
    const decoder = new ImageDecoder("i", (chunk) => void seen.push(chunk.slice()));
    t.equal(said(decoder, bytes, slice), "ok");
    t.ok(seen.length === chunks.length && seen.every((a, at) => equalBytes(a, chunks[at] ?? a)));
    const end = decoder.end();
    if (!end.ok) return t.fail(end.message);
    const { machine } = group;
    t.match(end.value, { chain: machine.chainDigest, rows: 11 * 2 + 3 });
    t.match(end.value.head, { index: 12, term: 3, origin: group.origin(ID), membership: null });
    t.equal(end.value.record.appliedIndex, 12);
    t.equal(end.value.highestIncarnation, 1);
    t.ok(end.value.highestToken >= 0n);
  }
  t.end();
});

t.test("a log is read as it was written, wherever its slices end", (t) => {
  const { group, bytes, entries } = sampleLog();
  for (const slice of [1, 3, 17, 1024, bytes.length]) {
    const seen: LogEntry[] = [];
    const kinds: (string | undefined)[] = [];
    const decoder = new LogDecoder("l", (entry, decoded) => {
      seen.push(entry);
      kinds.push(decoded?.commands[0]?.kind);
    });
    t.equal(said(decoder, bytes, slice), "ok");
    t.same(seen, entries);
    t.equal(kinds.at(-1), "mark");
    t.equal(kinds[5], undefined, "the first entry of a leader is empty");
    const end = decoder.end();
    if (!end.ok) return t.fail(end.message);
    t.same(end.value.trailer, { ...group.trailer(), count: entries.length });
    t.equal(end.value.head.before.index, 4);
  }
  t.end();
});

/** Every byte turned over in several ways, every beginning, and something behind the end. */
function spoil(t: Test, bytes: Uint8Array, name: string, make: () => Decoder): void {
  const prng = new Prng(7);
  const faults: string[] = [];
  for (let at = 0; at < bytes.length; at++) {
    for (const mask of [1, 0x80, 0xff, 1 + prng.below(255)]) {
      const copy = bytes.slice();
      copy[at] = (copy[at] as number) ^ mask;
      const text = said(make(), copy, 700);
      const place = Number(/^"f" at byte (\d+): /.exec(text)?.[1] ?? -1);
      const isTold = place >= 0 && place <= at;
      if (!isTold) faults.push(`byte ${at} ^ ${mask}: ${text}`);
    }
    const text = said(make(), bytes.subarray(0, at), 700);
    if (!/ends (?:too early|within)|the file ends/.test(text)) faults.push(`${at} bytes: ${text}`);
  }
  const longer = concatBytes(bytes, new Uint8Array([0]));
  if (said(make(), longer, 700) === "ok") faults.push("a byte more");
  const twice = concatBytes(bytes, bytes);
  if (said(make(), twice, 700) === "ok") faults.push("the file twice");
  t.same(faults.slice(0, 10), [], name);
}

t.test("P-136 every flipped, missing or added byte is told with its place", (t) => {
  spoil(t, sampleImage().bytes, "image", () => new ImageDecoder("f"));
  spoil(t, sampleLog().bytes, "log", () => new LogDecoder("f"));
  t.end();
});

/** The frames of a file, cut by their sizes. */
function framesOf(bytes: Uint8Array): Uint8Array[] {
  const frames: Uint8Array[] = [];
  for (let at = 0; at < bytes.length;) {
    const size = new DataView(bytes.buffer, bytes.byteOffset).getUint32(at, true) + 9;
    frames.push(bytes.subarray(at, at + size));
    at += size;
  }
  return frames;
}

function spliced<T>(list: readonly T[], at: number, count: number, ...parts: readonly T[]): T[] {
  const copy = [...list];
  copy.splice(at, count, ...parts);
  return copy;
}

t.test("P-136 records that are lost, doubled, swapped or of another file are told", (t) => {
  const mine = sampleLog();
  const frames = framesOf(mine.bytes);
  const other = framesOf(sampleLog(() => undefined).bytes);
  t.ok(frames.length > 5);
  const isTold = (parts: readonly Uint8Array[]): boolean =>
    said(new LogDecoder("f"), concatBytes(...parts), 500) !== "ok";
  for (let at = 0; at < frames.length; at++) {
    t.ok(isTold(spliced(frames, at, 1)), `${at} is lost`);
    t.ok(isTold(spliced(frames, at, 0, frames[at] as Uint8Array)), `${at} is there twice`);
    if (at === 0) continue;
    const [before, here] = [frames[at - 1] as Uint8Array, frames[at] as Uint8Array];
    t.ok(isTold(spliced(frames, at - 1, 2, here, before)), `${at} is swapped`);
  }
  t.notOk(isTold(spliced(frames, 2, 1, other[2] as Uint8Array)), "the same record, the same bytes");
  const image = framesOf(sampleImage().bytes);
  t.ok(isTold(image), "an image is no log");
  const asImage = said(new ImageDecoder("f"), mine.bytes, 500);
  t.match(asImage, '"f" at byte 0: the checksum');
  t.end();
});

t.test("P-128 a size that is too large is refused before it is believed", (t) => {
  const bytes = new Uint8Array(5);
  new DataView(bytes.buffer).setUint32(0, FRAME_BODY_MAX_BYTES + 1, true);
  const decoder = new FrameDecoder("f", 0, () => null);
  t.match(decoder.push(bytes), { code: "CorruptArtifact", message: /at byte 0: a record of/ });
  t.match(decoder.push(bytes), { code: "CorruptArtifact" }, "and stays refused");
  const largest = new FrameEncoder(5).frame(2, new Uint8Array(FRAME_BODY_MAX_BYTES).fill(3));
  let seen = 0;
  const reader = new FrameDecoder("f", 5, (_kind, body) => {
    seen = body.length;
    return null;
  });
  t.equal(said({ push: (x) => reader.push(x), end: () => ({ ok: true }) }, largest, 300_000), "ok");
  t.equal(seen, FRAME_BODY_MAX_BYTES);
  t.equal(reader.end(), null);
  t.end();
});

t.test(
  "a log whose entries do not follow each other, or do not end with its mark, is refused",
  (t) => {
    const saidOf = (change: (entries: LogEntry[]) => void): string =>
      said(new LogDecoder("f"), sampleLog(change).bytes, 4096);
    const of = (entries: readonly LogEntry[], at: number): LogEntry => entries[at] as LogEntry;
    t.equal(
      saidOf(() => undefined),
      "ok",
    );
    t.match(
      saidOf((e) => void e.splice(4, 1)),
      /entry 10 of term 4 follows 8 of term 3/,
    );
    t.match(
      saidOf((e) => void e.splice(0, 1)),
      /entry 6 of term 3 follows 4 of term 3/,
    );
    t.match(
      saidOf((e) => void e.pop()),
      /the trailer does not fit the entries/,
    );
    t.match(
      saidOf((e) => void (e[7] = { ...of(e, 7), term: 2 })),
      /term 2 follows 11 of term 4/,
    );
    const stamp = { leaseMs: 9, stamp: { n: 1, l: 1_700_000_000_092, c: 0xffff_ffff } };
    const foreign = encodeEntry(stamp, [{ kind: "mark", backupId: "f".repeat(32), round: 1 }]);
    const last = (e: LogEntry[]): LogEntry => of(e, e.length - 1);
    const group = sampleLog().group;
    const exact = { leaseMs: 9, stamp: group.machine.lastStamp };
    const end = (payload: Uint8Array) => (e: LogEntry[]) => {
      e[e.length - 1] = { ...last(e), payload };
    };
    t.match(saidOf(end(foreign)), /the trailer does not fit|does not end with the mark/);
    const stranger = encodeEntry(exact, [{ kind: "mark", backupId: "f".repeat(32), round: 1 }]);
    t.match(saidOf(end(stranger)), /does not end with the mark of its backup/);
    const mine = { kind: "mark", backupId: ID, round: 1 } as const;
    t.match(saidOf(end(encodeEntry(exact, [mine, mine]))), /does not end with the mark/);
    t.match(saidOf(end(new Uint8Array(0))), /the trailer does not fit/);
    t.match(saidOf(end(new Uint8Array([99, 1]))), /entry 14: Entry version 99 is not known/);
    t.match(
      saidOf(end(new Uint8Array([1, 1]))),
      /"f" at byte \d+: entry 14: The head of the entry/,
    );
    const foreignVersion = new LogDecoder("f");
    for (const frame of framesOf(sampleLog(end(new Uint8Array([99]))).bytes)) {
      const fault = foreignVersion.push(frame);
      if (fault !== null) t.equal(fault.code, "UnsupportedFormat");
    }
    t.end();
  },
);

t.test("an image says where it is, as its state does", (t) => {
  const group = new SampleGroup(7);
  group.write(6);
  const { head, chunks } = group.image(ID, 1 << 20);
  const write = (other: Partial<typeof head>, parts: readonly Uint8Array[] = chunks): string => {
    const encoder = new ImageEncoder();
    const bytes = [encoder.head({ ...head, ...other })];
    for (const part of parts) bytes.push(encoder.chunk(part));
    return said(new ImageDecoder("f"), concatBytes(...bytes, encoder.trailer()), 4096);
  };
  t.equal(write({}), "ok");
  const wrong = /the state is not the one that the head tells/;
  t.match(write({ index: 5 }), wrong);
  t.match(write({ term: 9 }), wrong);
  t.match(write({ stamp: { ...head.stamp, c: 9 } }), wrong);
  t.equal(write({ membership: new Uint8Array([1]) }), "ok", "who founded it, the head alone tells");
  t.match(write({ origin: group.origin("x") }), "ok");
  t.match(write({ origin: { ...head.origin, partition: 8 } }), /chunk 0 of the state is damaged/);
  t.match(write({}, []), /ends too early/);
  t.match(write({}, [...chunks, chunks[0] as Uint8Array]), /chunk 1 of the state is damaged/);
  const position = { index: group.machine.appliedIndex + 1, term: head.term };
  group.machine.applyMembership(position, new Uint8Array([1, 2]), NO_PLACEMENT);
  const changed = group.image(ID, 1 << 20);
  const other = (membership: Uint8Array | null): string => {
    return write({ ...changed.head, membership }, changed.chunks);
  };
  t.equal(other(new Uint8Array([1, 2])), "ok");
  t.match(other(new Uint8Array([1, 3])), wrong);
  t.match(other(null), wrong);
  t.end();
});
