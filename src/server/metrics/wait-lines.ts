/**
 * The metrics of waits for locks, and of watches, that are read at each scrape.
 *
 * Invariants: 1. Reading changes nothing. 2. Every series has its HELP and TYPE before its samples.
 */
import type { Distribution } from "../../host/requests/distribution.js";
import type { WaitTally } from "../../host/waiting/wait-tally.js";
import type { WatchTally } from "../../host/watching/watch-tally.js";
import { hyphenedNames, WatchEventType, WatchKind } from "../../base/result-types.js";
import { family, histogramLines, scalar } from "./exposition.js";

/** `times`: in milliseconds. */
function timeLines(lines: string[], name: string, help: string, times: Distribution): void {
  family(lines, name, "histogram", help);
  const bounds = times.bounds.map((ms) => ms / 1000);
  histogramLines(lines, name, "", bounds, times.counts, times.sum / 1000);
}

export function waitLines(lines: string[], tally: WaitTally): void {
  const { waiters, placesLeft, givenBack, forced, orphanedLists } = tally;
  scalar(lines, "svc_lock_waiters", "gauge", "Requests that wait for locks led here", waiters);
  const places = "Places of who went without a word and may come back";
  scalar(lines, "svc_lock_places_left", "gauge", places, placesLeft);
  const lists = "Lists of heirs, of former leaders, that bind who waits here";
  scalar(lines, "svc_lock_orphaned_lists", "gauge", lists, orphanedLists);
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

function byNumber(
  lines: string[],
  series: string,
  label: string,
  table: Readonly<Record<string, number>>,
  counts: readonly number[],
): void {
  for (const [number, name] of hyphenedNames(table)) {
    if (number === 0) continue;
    lines.push(`${series}{${label}="${name}"} ${counts[number] ?? 0}`);
  }
}

export function watchLines(lines: string[], tally: WatchTally): void {
  family(lines, "svc_watchers", "gauge", "Watches, by what they are of");
  byNumber(lines, "svc_watchers", "kind", WatchKind, tally.watchers);
  scalar(lines, "svc_watch_streams", "gauge", "Streams and polls that may watch", tally.streams);
  const events = "svc_watch_events_total";
  family(lines, events, "counter", "Changes of watched names, by type");
  byNumber(lines, events, "type", WatchEventType, tally.events);
  const sent = "Bytes of messages to watchers that went to sockets";
  scalar(lines, "svc_watch_sent_bytes_total", "counter", sent, tally.sentBytes);
  const merged = "svc_watch_merged_total";
  family(lines, merged, "counter", "Times that a watch was told newest states alone, by why");
  for (const [reason, count] of tally.merged) lines.push(`${merged}{reason="${reason}"} ${count}`);
  const resets = "Times that a watch was told the whole state anew";
  scalar(lines, "svc_watch_resets_total", "counter", resets, tally.resets);
  const behind = "Watches that are set back to their cursors";
  scalar(lines, "svc_watch_behind", "gauge", behind, tally.behind);
  const unsent = "Unsent bytes of watch streams";
  scalar(lines, "svc_watch_buffer_bytes", "gauge", unsent, tally.bufferBytes);
  const history = "Changes kept for watches that are slow or come back";
  scalar(lines, "svc_watch_history_bytes", "gauge", history, tally.historyBytes);
  const delay = "From a change that is applied to its message that leaves";
  timeLines(lines, "svc_watch_delay_seconds", delay, tally.delays);
}
