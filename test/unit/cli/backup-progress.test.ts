/** How far a backup is, as a terminal tells it. */
import t from "tap";
import type { RunningBackup } from "../../../src/client/mod.js";
import { progressText } from "../../../src/cli/run/backup-progress.js";

const begun: RunningBackup = {
  ...{ operation: "0123456789ab", kind: "full", phase: "beginning", startedAtUtc: "" },
  ...{ elapsedMs: 0n, partitionsDone: 0, partitionsTotal: 0, bytesDone: 0n, bytesTotal: 0n },
};

t.test("8.2 what is known is told: partitions, bytes, rate and time left", (t) => {
  t.equal(progressText(begun, null), "full: beginning");
  const images = { ...begun, phase: "images", partitionsDone: 2, partitionsTotal: 16 };
  t.equal(progressText(images, begun), "full: images, 2 of 16 partitions");
  const first = { ...images, bytesDone: 1_572_864n, elapsedMs: 1000n };
  t.equal(progressText(first, images), "full: images, 2 of 16 partitions, 1.5 MiB, 1.5 MiB/s");
  const second = { ...first, bytesDone: 12_582_912n, bytesTotal: 1_258_291_200n, elapsedMs: 2000n };
  t.equal(
    progressText(second, first),
    "full: images, 2 of 16 partitions, 12 MiB of 1.2 GiB, 11 MiB/s, 1 min 54 s left",
  );
  const other = { ...second, operation: "other" };
  t.notMatch(progressText(other, first), /left|\/s/, "no rate over two operations");
  const slow = { ...second, bytesDone: first.bytesDone + 1024n };
  t.match(progressText(slow, first), /1\.0 KiB\/s, 340 h 5\d min left/);
  const still = { ...second, bytesDone: first.bytesDone, bytesTotal: 9_000_000n };
  t.notMatch(progressText(still, first), /left/);
  t.end();
});
