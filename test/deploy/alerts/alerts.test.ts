/**
 * Each alert of the shipped rules fires and ends in a real Prometheus over three real nodes that are brought to it; only their
 * times are shortened. A part each day; `npm run alerts` drives all and says how long each took.
 */
import t, { type Test } from "tap";
import { PartOfDay } from "../../doubles/part-of-day.js";
import { endAll } from "../../process/cluster/server-process.js";
import { hasSmallDisk } from "../../process/cluster/small-disk.js";
import { readText } from "../../tidy/sources.js";
import { alertsOf } from "../monitoring.js";
import { isInstalled } from "../prometheus.js";
import type { Part } from "./drive.js";
import { Field } from "./field.js";
import { PARTS } from "./table.js";

t.setTimeout(1_800_000);
t.teardown(endAll);

const nameOf = (alert: string): string => alert.split(" ")[0] ?? "";

t.test("every alert that is shipped is driven, once", (t) => {
  const shipped = alertsOf(readText("scripts/deploy/monitoring/rules.yaml")).map(
    ({ name }) => name,
  );
  const drives = PARTS.flatMap((part) => part.drives);
  t.same(drives.flatMap(({ alerts }) => alerts.map(nameOf)).sort(), shipped.sort());
  const shown = drives.filter(({ standsIn }) => standsIn !== undefined);
  t.ok(shown.length <= 5, "nearly all of them by nodes");
  t.end();
});

const times: string[] = [];
const secondsSince = (ms: number): string => ((performance.now() - ms) / 1000).toFixed(1);

async function driven(t: Test, part: Part): Promise<void> {
  const field = await Field.make(t, part.flags, part.start !== null);
  if (part.disk !== undefined && !hasSmallDisk(t, field.stage.path("small"), part.disk)) return;
  await part.prepare?.(field);
  await part.start?.(field);
  const all = part.drives.flatMap(({ alerts }) => alerts);
  await field.until(t, "none of them fires before", all, false);
  for (const drive of part.drives) {
    await t.test(drive.how, async (t) => {
      const beganMs = performance.now();
      await drive.begin?.(field);
      const again = async (): Promise<unknown> => drive.again?.(field);
      const isDone = await field.until(t, "they fire", drive.alerts, true, again);
      if (!isDone) t.comment(field.stage.logs());
      await drive.end?.(field);
      times.push(`${secondsSince(beganMs).padStart(7)} s  ${drive.alerts.join(", ")}`);
    });
  }
  const endedMs = performance.now();
  await field.until(t, "all of them end", all, false);
  times.push(`${secondsSince(endedMs).padStart(7)} s  until all of ${part.name} were over`);
}

const PART = new PartOfDay("SVC_ALERTS", PARTS.length);

t.test(`alerts fire and end, ${PART.text}`, async (t) => {
  if (!isInstalled()) return void t.pass("skipped: prometheus is not installed");
  for (const part of PART.of(PARTS)) await t.test(part.name, (t) => driven(t, part));
  t.comment(`how long each took:\n${times.join("\n")}`);
});
