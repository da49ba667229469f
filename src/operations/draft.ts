/**
 * One frame in the making: the items of one turn to one peer.
 *
 * Owns its buffer. May call base and the wire shapes. Invariants: 1. All items of a frame belong to
 * one life of the asking node. 2. What was dropped can be named: the ids are kept until then.
 */
import { assert } from "../base/assert.js";
import { ByteWriter } from "../base/codec.js";
import { type Direction, beginFrame } from "./wire/calls.js";

export class Draft {
  private readonly writer = new ByteWriter(1024);
  private ids: number[] = [];
  private frameEpoch = 0;

  constructor(readonly direction: Direction) {}

  get isEmpty(): boolean {
    return this.ids.length === 0;
  }

  get epoch(): number {
    return this.frameEpoch;
  }

  get sizeBytes(): number {
    return this.writer.sizeBytes;
  }

  add(epoch: number, id: number, body: Uint8Array): void {
    assert(this.isEmpty || epoch === this.frameEpoch, "a frame belongs to one life of the asker");
    if (this.isEmpty) {
      this.frameEpoch = epoch;
      beginFrame(this.writer, this.direction, epoch);
    }
    this.ids.push(id);
    this.writer.bytes(body);
  }

  finish(): Uint8Array {
    return this.writer.finish();
  }

  /** Empties the frame; returns the ids of what was in it. */
  drop(): readonly number[] {
    const { ids } = this;
    this.ids = [];
    this.writer.reset();
    return ids;
  }
}
