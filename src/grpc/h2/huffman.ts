/**
 * The Huffman code of HPACK (RFC 7541, appendix B), decoded four bits at a time.
 *
 * The code is canonical: codes of one length are consecutive in the order of their symbols, so that
 * it follows from the lengths alone. Invariants: 1. What does not end in less than eight bits of
 * the end-of-string code is refused, and so is that code itself.
 */

/** Bits of the code of each byte, and at last of the end of the string. */
// prettier-ignore
export const CODE_LENGTHS: readonly number[] = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
  28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5,
  6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
  7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6,
  7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23,
  23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22,
  22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22,
  23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27,
  27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25,
  24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

const END_SYMBOL = 256;

/** The codes of all symbols, as numbers of as many bits as their lengths say. */
export function canonicalCodes(lengths: readonly number[]): number[] {
  const order = lengths.map((_, symbol) => symbol);
  const lengthOf = (symbol: number): number => lengths[symbol] ?? 0;
  order.sort((left, right) => lengthOf(left) - lengthOf(right) || left - right);
  const codes = new Array<number>(lengths.length).fill(0);
  let next = 0;
  let bits = 0;
  for (const symbol of order) {
    next *= 2 ** (lengthOf(symbol) - bits);
    bits = lengthOf(symbol);
    codes[symbol] = next;
    next += 1;
  }
  return codes;
}

const FAILS = 1 << 30;
const EMITS = 1 << 29;
const NODE_BITS = 9;

/** The nodes of the tree: at node * 2 + bit the next node, or -1 - symbol; 0 = not made yet. */
function treeOf(lengths: readonly number[]): number[] {
  const tree = [0, 0];
  for (const [symbol, code] of canonicalCodes(lengths).entries()) {
    let node = 0;
    for (let left = (lengths[symbol] ?? 0) - 1; left >= 0; left--) {
      const edge = node * 2 + (Math.floor(code / 2 ** left) & 1);
      if (left === 0) tree[edge] = -1 - symbol;
      else if (tree[edge] === 0) {
        tree[edge] = tree.length / 2;
        tree.push(0, 0);
      }
      node = tree[edge] ?? 0;
    }
  }
  return tree;
}

const tree = treeOf(CODE_LENGTHS);
/** Where four more bits lead from a node: the next node, the symbol that they end, if any. */
const steps = new Int32Array((tree.length / 2) * 16);
/** Nodes in which a string may end: on the way to its end symbol, fewer than eight bits deep. */
const mayEnd = new Uint8Array(tree.length / 2);

for (let node = 0; node < tree.length / 2; node++) {
  for (let nibble = 0; nibble < 16; nibble++) {
    let at = node;
    let emitted = 0;
    for (let bit = 3; bit >= 0 && at >= 0; bit--) {
      at = tree[at * 2 + ((nibble >> bit) & 1)] ?? 0;
      if (at >= 0) continue;
      const symbol = -1 - at;
      if (symbol === END_SYMBOL) break;
      emitted = EMITS | (symbol << NODE_BITS);
      at = 0;
    }
    steps[node * 16 + nibble] = at < 0 ? FAILS : emitted | at;
  }
}
for (let node = 0, depth = 0; depth < 8; depth++) {
  mayEnd[node] = 1;
  node = tree[node * 2 + 1] ?? 0;
}

/** Room for what a header block can hold when each of its bits pairs ends a symbol. */
let scratch = Buffer.alloc(4096);

/** The text in bytes[start, end), one character a byte; null when it is not such a code. */
export function decodeHuffman(bytes: Buffer, start: number, end: number): string | null {
  // The shortest code has five bits.
  const most = Math.ceil(((end - start) * 8) / 5);
  if (scratch.length < most) scratch = Buffer.alloc(most);
  let node = 0;
  let size = 0;
  for (let at = start; at < end; at++) {
    const byte = bytes[at] ?? 0;
    let step = steps[node * 16 + (byte >> 4)] ?? FAILS;
    if (step & FAILS) return null;
    if (step & EMITS) scratch[size++] = step >> NODE_BITS;
    node = step & ((1 << NODE_BITS) - 1);
    step = steps[node * 16 + (byte & 15)] ?? FAILS;
    if (step & FAILS) return null;
    if (step & EMITS) scratch[size++] = step >> NODE_BITS;
    node = step & ((1 << NODE_BITS) - 1);
  }
  return mayEnd[node] === 1 ? scratch.toString("latin1", 0, size) : null;
}
