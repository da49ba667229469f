/** Who has which keys, as the rows of a meta partition and of other groups say. */
import { hashPartition, keySpaceHashText } from "../../../src/base/routing.js";
import type { Machine } from "../../../src/machine/machine.js";
import type { Ownership } from "../../../src/machine/ownership/ownership.js";
import { isSettled } from "../../../src/machine/ownership/ownership-row.js";
import { byteKeyToText, textToByteKey } from "../../../src/machine/store/keys.js";
import type { SeenInterval, SeenSpace } from "../../judge/checkers/backups/forced-map.js";

export function spacesIn({ meta }: Machine, groups: readonly Machine[]): readonly SeenSpace[] {
  const poolSize = meta.cluster()?.dataPartitions ?? 0;
  const rows = groups.flatMap(({ ownership }) => ownership.all());
  const named = meta.keySpaces().map(({ keySpace }) => keySpace);
  const spaces = new Set([...named, ...rows.map(({ keySpace }) => keySpace)]);
  return [...spaces].map((keySpace): SeenSpace => {
    const home = hashPartition(keySpaceHashText(keySpace), poolSize);
    const byHash = [{ startKey: null, endKey: null, partition: home }];
    const mapped = meta.ranges(keySpace).map(({ startKey, endKey, partitionId: partition }) => {
      return { startKey, endKey, partition };
    });
    // Another partition of the pool owns every key of which it says nothing: nobody asks it.
    const isAbout = ({ group, ownership }: Machine): boolean => {
      const own = ownership.rowsOf(textToByteKey(keySpace));
      return group === home || !ownership.ownsByDefault || own.length > 0;
    };
    const owned = groups.filter(isAbout).flatMap(({ group, ownership }) => {
      return spansOf(ownership, keySpace, group);
    });
    const onTheirWay = rows.filter((row) => {
      return row.keySpace === keySpace && !isSettled(row) && row.state !== "left";
    });
    const open = onTheirWay.length + (meta.move(keySpace) === null ? 0 : 1);
    return { keySpace, mapped: mapped.length > 0 ? mapped : byHash, owned, open };
  });
}

function spansOf(ownership: Ownership, keySpace: string, partition: number): SeenInterval[] {
  return ownership.spans(textToByteKey(keySpace), "", null).map(({ first, last }) => ({
    startKey: first === "" ? null : byteKeyToText(first),
    endKey: last === null ? null : byteKeyToText(last),
    partition,
  }));
}
