/**
 * Membership changes in the notation of scenario files: `v5 l6 r7 u8`.
 */
import type { ConfigChange, ConfigOperation } from "../../src/raft/state/types.js";

const letterOf: Readonly<Record<ConfigOperation["kind"], string>> = {
  addVoter: "v",
  addLearner: "l",
  remove: "r",
  update: "u",
};

const kindOf = new Map<string, ConfigOperation["kind"]>(
  (Object.keys(letterOf) as ConfigOperation["kind"][]).map((kind) => [letterOf[kind], kind]),
);

export function formatOperations(operations: readonly ConfigOperation[]): string {
  return operations.map(({ kind, node }) => `${letterOf[kind]}${node}`).join(" ");
}

export function parseOperations(text: string): ConfigOperation[] {
  const words = text.split(/\s+/).filter((word) => word !== "");
  return words.map((word) => {
    if (word.length < 2) throw new Error(`unknown token ${word}`);
    const kind = kindOf.get(word[0] ?? "");
    if (kind === undefined) throw new Error(`unknown input: ${word}`);
    const node = word.slice(1);
    if (!/^[0-9]+$/.test(node)) {
      throw new Error(`strconv.ParseUint: parsing ${JSON.stringify(node)}: invalid syntax`);
    }
    return { kind, node: Number(node) };
  });
}

function varintLength(value: number): number {
  let length = 1;
  for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) length++;
  return length;
}

/** The bytes that a payload of `dataBytes` adds to an encoded entry in the original's encoding. */
export function encodedPayloadBytes(dataBytes: number): number {
  return dataBytes === 0 ? 0 : 1 + varintLength(dataBytes) + dataBytes;
}

/** The length of the change as the original encodes it. */
export function encodedChangeBytes(change: ConfigChange): number {
  if (change.version === 1) return 5 + varintLength(change.operations[0]?.node ?? 0);
  let bytes = 2;
  for (const operation of change.operations) bytes += 5 + varintLength(operation.node);
  return bytes;
}
