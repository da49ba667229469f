/**
 * What a run did, as one running hash, and in words for the time around a violation.
 *
 * Every event, message, disk call and answer is mixed in. Two runs of one seed are the same run
 * exactly when their hashes are equal. Invariants: 1. Only 32-bit integer arithmetic. 2. The words
 * cost nothing while nobody wants them: the last lines are kept as closures' results only when
 * `words` is on.
 */

const BITS = new DataView(new ArrayBuffer(8));

export class Trace {
  private low = 0x811c9dc5 | 0;
  private high = 0x01000193 | 0;
  /** Things mixed in so far. */
  count = 0;
  private readonly lines: string[] = [];
  private first = 0;

  /** `linesMax`: lines of words kept; 0 keeps none, Infinity all. */
  constructor(private readonly linesMax: number) {}

  get hasWords(): boolean {
    return this.linesMax > 0;
  }

  /** Mixes one whole number in. */
  mix(value: number): void {
    this.low = Math.imul(this.low ^ value, 0x85ebca6b);
    this.low ^= this.low >>> 15;
    this.high = Math.imul((this.high ^ this.low) + 0x165667b1, 0xc2b2ae35);
    this.high ^= this.high >>> 13;
    this.count++;
  }

  /** Mixes any number in, to the last bit. */
  mixExact(value: number): void {
    BITS.setFloat64(0, value);
    this.mix(BITS.getInt32(0));
    this.mix(BITS.getInt32(4));
  }

  mixText(text: string): void {
    for (let at = 0; at < text.length; at++) this.mix(text.charCodeAt(at));
  }

  mixBytes(bytes: Uint8Array): void {
    const { length } = bytes;
    let sum = length;
    let at = 0;
    // Long stretches are whole blocks of a disk; as words they are read four times as fast.
    if (length >= 512 && bytes.byteOffset % 4 === 0) {
      const words = new Int32Array(bytes.buffer, bytes.byteOffset, length >>> 2);
      for (let word = 0; word < words.length; word++) {
        sum = Math.imul(sum ^ (words[word] as number), 0x5bd1e995);
        sum ^= sum >>> 15;
      }
      at = words.length * 4;
    }
    for (const end = length - 3; at < end; at += 4) {
      const low = (bytes[at] as number) | ((bytes[at + 1] as number) << 8);
      const high = ((bytes[at + 2] as number) << 16) | ((bytes[at + 3] as number) << 24);
      sum = Math.imul(sum ^ low ^ high, 0x5bd1e995);
      sum ^= sum >>> 15;
    }
    for (; at < length; at++) sum = Math.imul(sum ^ (bytes[at] as number), 0x5bd1e995);
    this.mix(sum);
  }

  /** Keeps a line of words. Ask `hasWords` before the text is made. */
  say(line: string): void {
    if (this.linesMax === 0) return;
    this.lines.push(line);
    if (this.lines.length - this.first <= this.linesMax) return;
    this.first++;
    if (this.first < 4096 || this.first * 2 < this.lines.length) return;
    this.lines.splice(0, this.first);
    this.first = 0;
  }

  /** The lines kept, oldest first. */
  words(): readonly string[] {
    return this.lines.slice(this.first);
  }

  /** 16 hexadecimal digits. */
  hash(): string {
    const part = (value: number): string => (value >>> 0).toString(16).padStart(8, "0");
    return part(this.high) + part(this.low);
  }
}
