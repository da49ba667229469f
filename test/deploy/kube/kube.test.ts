/**
 * The manifests as a cluster would run them: pods are real processes with namespaces, users, mounts and probes of their own,
 * and a new address at each creation. A part of the scenarios each day; `SVC_KUBE_PARTS=all` for all of them.
 */
import t from "tap";
import { PartOfDay } from "../../doubles/part-of-day.js";
import { flooded, guarded, replayed } from "./bounds.js";
import { canPlayPods } from "./network.js";
import { Play, secrets } from "./play.js";
import {
  claimLost,
  evicted,
  founded,
  majorityLost,
  quorumLost,
  restarted,
  scaled,
  scaledAgain,
  unnamed,
  updated,
} from "./scenarios.js";

const SCENARIOS = [
  restarted,
  claimLost,
  scaled,
  updated,
  quorumLost,
  evicted,
  majorityLost,
  scaledAgain,
  unnamed,
  guarded,
  flooded,
  replayed,
];
const PART = new PartOfDay("SVC_KUBE_PARTS", SCENARIOS.length);

t.test(`pods from the manifests, ${PART.text}`, { timeout: 3_000_000 }, async (t) => {
  if (!canPlayPods()) return void t.pass("skipped: this needs root, iproute2 and unshare");
  const play = new Play(t, await secrets());
  if (!play.stateful.isGuarded) t.comment("without nftables no NetworkPolicy is in force");
  await founded(t, play);
  for (const scenario of PART.of(SCENARIOS)) {
    const beganMs = performance.now();
    await scenario(t, play);
    t.comment(`${scenario.name}: ${Math.round((performance.now() - beganMs) / 1000)} s`);
  }
  t.equal(play.restarts(), 0, "no probe ended anything");
});
