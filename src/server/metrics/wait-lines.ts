/**
 * The metrics of waits for locks that are read at each scrape.
 *
 * Invariants: 1. Reading changes nothing. 2. Every series has its HELP and TYPE before its samples.
 */
import type { Distribution } from "../../host/requests/distribution.js";
import type { WaitTally } from "../../host/waiting/wait-tally.js";
import { family, histogramLines, scalar } from "./exposition.js";

/** `times`: in milliseconds. */
function timeLines(lines: string[], name: string, help: string, times: Distribution): void {
  family(lines, name, "histogram", help);
  const bounds = times.bounds.map((ms) => ms / 1000);
  histogramLines(lines, name, "", bounds, times.counts, times.sum / 1000);
}

export function waitLines(lines: string[], tally: WaitTally): void {
  const { waiters, placesLeft, givenBack, forced } = tally;
  scalar(lines, "svc_lock_waiters", "gauge", "Requests that wait for locks led here", waiters);
  const places = "Places of who went without a word and may come back";
  scalar(lines, "svc_lock_places_left", "gauge", places, placesLeft);
  const back = "Grants for which nobody waited any more";
  scalar(lines, "svc_lock_given_back_total", "counter", back, givenBack);
  const releases = "Locks led here that were released by force";
  scalar(lines, "svc_lock_forced_releases_total", "counter", releases, forced);
  const ends = "svc_lock_waits_total";
  family(lines, ends, "counter", "Waits for locks led here, by how they ended");
  for (const [end, count] of tally.ends) lines.push(`${ends}{end="${end}"} ${count}`);
  const handoffs = "svc_lock_handoffs_total";
  family(lines, handoffs, "counter", "Locks that went to who waited, by how");
  for (const [path, count] of tally.handoffs) lines.push(`${handoffs}{path="${path}"} ${count}`);
  timeLines(lines, "svc_lock_wait_seconds", "How long requests waited for locks", tally.waits);
  const times = "svc_lock_handoff_seconds";
  timeLines(lines, times, "From a release to the grant of the next one", tally.handoffTimes);
}
