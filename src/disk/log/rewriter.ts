/**
 * Forward rewriting: small live remains of the oldest segment are written again at the end, so that
 * an idle group cannot pin the log (P-116).
 *
 * Owns at most one slice in flight.
 *
 * Invariants: 1. A record that moved is released in its old segment only when the copy is framed,
 * and the old segment goes only after the copy is durable. 2. Work is sliced by bytes and entries.
 * 3. A full disk stops it: what is left of the log is kept for state records. 4. It never writes
 * more than the groups themselves wrote.
 *
 * When: with SEALED_MAX or more sealed segments, and the oldest at most a quarter alive; or
 * whatever lives in it, once what is dead in the log exceeds GARBAGE_MAX segments. Groups with more
 * than that in the oldest segment are better flushed by the host, see `pinningGroups`.
 */
import { present } from "../../base/assert.js";
import type { PartitionId } from "../../base/ids.js";
import { frameBytes } from "../../wasm/kernels.js";
import type { Appender, RestatedEntry } from "./appender.js";
import type { GroupIndex } from "./groupindex.js";
import type { Reader, WantedEntry } from "./reader.js";
import { SECTOR_BYTES } from "./records.js";
import type { Segment } from "./segment.js";
import type { SegmentSet } from "./segments.js";

const SEALED_MAX = 2;
const GARBAGE_MAX = 2;
const SLICE_BYTES = 512 * 1024;
const SLICE_ENTRIES = 512;
const STATE_FRAME_BYTES = 64;

export class Rewriter {
  private busy = false;
  /** What rewriting has written, roughly. */
  private spentBytes = 0;

  constructor(
    private readonly appender: Appender,
    private readonly segments: SegmentSet,
    private readonly reader: Reader,
  ) {}

  /** Groups with entries in the oldest segments, when the log is larger than it should be. */
  pinningGroups(): readonly PartitionId[] {
    const { all } = this.segments;
    if (all.length <= SEALED_MAX) return [];
    const newest = present(all[all.length - SEALED_MAX], "the log has that many segments").sequence;
    const pinning: { group: PartitionId; sequence: number; bytes: number }[] = [];
    for (const { group, shares, stateSegment } of this.appender.groups.values()) {
      for (const [sequence, { records, bytes }] of shares) {
        const entries = records - (stateSegment === sequence ? 1 : 0);
        if (sequence <= newest && entries > 0) pinning.push({ group, sequence, bytes });
      }
    }
    pinning.sort((a, b) => a.sequence - b.sequence || b.bytes - a.bytes);
    return [...new Set(pinning.map(({ group }) => group))];
  }

  /** Rewrites a slice if it is time to. */
  advance(): void {
    if (this.busy || this.appender.hasStopped || this.segments.isFull) return;
    const oldest = this.due();
    if (oldest === null) return;
    const groups: GroupIndex[] = [];
    let states = 0;
    for (const index of this.appender.groups.values()) {
      if (index.stateSegment === oldest.sequence) {
        this.appender.restateGroup(index);
        states++;
      }
      const share = index.shares.get(oldest.sequence);
      const isState = index.stateSegment === oldest.sequence ? 1 : 0;
      if (share !== undefined && share.records > isState) groups.push(index);
    }
    if (states === 0 && groups.length === 0) return;
    this.busy = true;
    this.spentBytes += SECTOR_BYTES + states * STATE_FRAME_BYTES;
    this.gather(oldest, groups, [], 0);
  }

  private due(): Segment | null {
    const { all, segmentBytes } = this.segments;
    const oldest = all[0];
    if (oldest === undefined || all.length <= SEALED_MAX || oldest.liveRecords === 0) return null;
    // Rewriting may not write more than the groups do, or a tiny log would turn for ever.
    if (this.spentBytes + oldest.liveBytes > this.appender.clientBytes) return null;
    if (oldest.liveBytes <= segmentBytes / 4) return oldest;
    const dead = (all.length - 1) * segmentBytes - this.segments.liveBytes();
    return dead > GARBAGE_MAX * segmentBytes ? oldest : null;
  }

  /** Reads remains of one group after the other until a slice is full, then writes them. */
  private gather(
    segment: Segment,
    groups: GroupIndex[],
    slice: RestatedEntry[],
    bytes: number,
  ): void {
    const index = groups.shift();
    const wanted = index === undefined ? [] : this.wanted(index, segment);
    if (index === undefined || bytes >= SLICE_BYTES) return this.submit(slice);
    if (wanted.length === 0) return this.gather(segment, groups, slice, bytes);
    this.reader.fetch(index, wanted, (found) => {
      if (found === null) return;
      let total = bytes;
      for (const [at, entry] of found.entries()) {
        const from = wanted[at]?.place;
        if (from === undefined) continue;
        slice.push({ index, entry, from });
        total += frameBytes(entry.payload.length);
      }
      this.gather(segment, groups, slice, total);
    });
  }

  private submit(entries: readonly RestatedEntry[]): void {
    for (const { entry } of entries) this.spentBytes += frameBytes(entry.payload.length);
    const done = (): void => {
      this.busy = false;
      this.advance();
    };
    this.appender.submit({ kind: "restate", entries, framed: 0, done });
  }

  private wanted(index: GroupIndex, segment: Segment): WantedEntry[] {
    const wanted: WantedEntry[] = [];
    let start = 0;
    let previous = -1;
    for (const at of index.entriesIn(segment.sequence, SLICE_ENTRIES)) {
      const place = index.place(at);
      if (place === null || place.offset < previous) break;
      if (wanted.length === 0) start = place.offset;
      else if (place.offset + place.payloadBytes - start > SLICE_BYTES) break;
      wanted.push({ index: at, place });
      previous = place.offset;
    }
    return wanted;
  }
}
