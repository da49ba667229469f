/**
 * Where a stored row belongs, in words, for whoever looks into its damage.
 *
 * Pure. Invariant: no value and no name below a key space is told.
 */
import { decodeText } from "../../base/bytes.js";
import { keySpaceOf } from "../../base/routing.js";
import { KeySpace, RowKind } from "./keys.js";

/** Space, group and generation of a row's key lie before its kind and name. */
const GROUP_AT = 1;
const KIND_AT = 9;
const NAME_AT = 10;

const KIND_NAMES = new Map<number, string>(
  Object.entries(RowKind).map(([name, kind]) => [kind, name]),
);

/** Partition, kind and key space of the row with the store key `key`. */
export function placeOfRow(key: Uint8Array): string {
  const space = key[0];
  if (key.length < GROUP_AT + 4 || space === KeySpace.node) return "a row of the node";
  const partition = new DataView(key.buffer, key.byteOffset).getUint32(GROUP_AT);
  const where = `partition ${String(partition)}`;
  if (space !== KeySpace.groupRows) return `${where}, its record`;
  const kind = key[KIND_AT] ?? 0;
  const name = `${where}, a row of kind ${KIND_NAMES.get(kind) ?? "unknown"}`;
  if (kind !== RowKind.value) return name;
  // Damage may lie in the key itself.
  const text = decodeText(key.subarray(NAME_AT));
  return text === null ? name : `${name}, key space ${JSON.stringify(keySpaceOf(text))}`;
}
