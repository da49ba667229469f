/**
 * The frames that artifacts consist of, so that a flipped, lost, doubled or moved byte is seen, and
 * where.
 *
 * Layout of a frame: size of the body u32, kind u8, body, CRC-32C u32 of all of it. Invariants: 1.
 * Each checksum goes on from the one before it, the first from the seed of the file's kind: a frame
 * is right in one place only. 2. Of a damaged file nothing is shown that lies behind the damage. 3.
 * A reader holds one frame at most, and a size is checked before anything is allocated for it.
 */
import { assert } from "../base/assert.js";
import { concatBytes, encodeText, uint32At } from "../base/bytes.js";
import { ENTRY_PAYLOAD_MAX_BYTES } from "../base/limits.js";
import { crc32c } from "../wasm/kernels.js";
import { type BackupFault, damage } from "./faults.js";

/** The largest chunk of an image: an entry's payload and what is around it. */
export const FRAME_BODY_MAX_BYTES = ENTRY_PAYLOAD_MAX_BYTES + (1 << 20);

const HEAD_BYTES = 5;
const CHECKSUM_BYTES = 4;

/** Kinds of frames: the same numbers in all artifacts. */
export const FrameKind = { head: 1, content: 2, trailer: 3 } as const;

/** Where the chain of checksums of a file begins. */
export function frameSeed(fileKind: string): number {
  return crc32c(encodeText(fileKind));
}

function putUint32(bytes: Uint8Array, at: number, value: number): void {
  for (let place = 0; place < 4; place++) bytes[at + place] = (value >>> (8 * place)) & 0xff;
}

/** Makes the frames of one file, in order. */
export class FrameEncoder {
  constructor(private checksum: number) {}

  frame(kind: number, body: Uint8Array): Uint8Array {
    assert(body.length <= FRAME_BODY_MAX_BYTES, "the body of a frame is bounded");
    const bytes = new Uint8Array(HEAD_BYTES + body.length + CHECKSUM_BYTES);
    putUint32(bytes, 0, body.length);
    bytes[4] = kind;
    bytes.set(body, HEAD_BYTES);
    const end = bytes.length - CHECKSUM_BYTES;
    this.checksum = crc32c(bytes, this.checksum, 0, end);
    putUint32(bytes, end, this.checksum);
    return bytes;
  }
}

/** Takes a frame; what it says is wrong ends the reading. `body`: valid until it returns. */
export type FrameVisitor = (kind: number, body: Uint8Array, offset: number) => BackupFault | null;

/** Cuts a stream of bytes into frames, wherever its slices end. */
export class FrameDecoder {
  /** Where the frame that is being read begins in the file. */
  private offset = 0;
  /** The frame that began in an earlier slice: its bytes so far, and how long it is. */
  private held: Uint8Array = new Uint8Array(HEAD_BYTES);
  private heldBytes = 0;
  private fault: BackupFault | null = null;

  constructor(
    private readonly path: string,
    private checksum: number,
    private readonly visit: FrameVisitor,
  ) {}

  /** Takes the next bytes of the file. */
  push(slice: Uint8Array): BackupFault | null {
    let at = 0;
    while (this.fault === null && at < slice.length) {
      at = this.heldBytes > 0 ? this.fill(slice, at) : this.direct(slice, at);
    }
    return this.fault;
  }

  /** The file has ended. */
  end(): BackupFault | null {
    if (this.fault === null && this.heldBytes > 0) this.fail("the file ends within a record");
    return this.fault;
  }

  private fail(what: string): void {
    this.fault = damage(this.path, this.offset, what);
  }

  /** A frame that lies in the slice as a whole is looked at where it is. */
  private direct(slice: Uint8Array, at: number): number {
    const left = slice.length - at;
    if (left < HEAD_BYTES) return this.hold(slice, at, HEAD_BYTES);
    const size = this.frameBytes(slice, at);
    if (this.fault !== null) return slice.length;
    if (left < size) return this.hold(slice, at, size);
    this.take(slice, at, size);
    return at + size;
  }

  private hold(slice: Uint8Array, at: number, sizeBytes: number): number {
    const part = slice.subarray(at);
    this.held = new Uint8Array(sizeBytes);
    this.held.set(part);
    this.heldBytes = part.length;
    return slice.length;
  }

  private fill(slice: Uint8Array, at: number): number {
    const part = slice.subarray(at, at + this.held.length - this.heldBytes);
    this.held.set(part, this.heldBytes);
    this.heldBytes += part.length;
    if (this.heldBytes === this.held.length) this.filled();
    return at + part.length;
  }

  private filled(): void {
    const { held } = this;
    const size = this.frameBytes(held, 0);
    if (this.fault !== null) return;
    if (held.length < size) {
      this.held = new Uint8Array(size);
      this.held.set(held);
      return;
    }
    this.heldBytes = 0;
    this.take(held, 0, size);
  }

  /** How long the frame is whose head lies at `at`. */
  private frameBytes(bytes: Uint8Array, at: number): number {
    const body = uint32At(bytes, at);
    if (body > FRAME_BODY_MAX_BYTES) this.fail(`a record of ${body} bytes`);
    return HEAD_BYTES + body + CHECKSUM_BYTES;
  }

  private take(bytes: Uint8Array, at: number, size: number): void {
    const end = at + size - CHECKSUM_BYTES;
    const checksum = crc32c(bytes, this.checksum, at, end);
    if (checksum !== uint32At(bytes, end)) return this.fail("the checksum of a record is wrong");
    this.checksum = checksum;
    this.fault = this.visit(
      bytes[at + 4] as number,
      bytes.subarray(at + HEAD_BYTES, end),
      this.offset,
    );
    this.offset += size;
  }
}

/** Several frames as one piece, for one write. */
export function joinFrames(frames: readonly Uint8Array[]): Uint8Array {
  const [only] = frames;
  return frames.length === 1 && only !== undefined ? only : concatBytes(...frames);
}
