/**
 * Figures and names as people read them, and the state of a cluster as a sentence.
 *
 * Invariants: 1. What a caller named is never shown in a way that hides what it is: characters that
 * are not seen, or that turn the direction of text, are written out.
 */
import type { Wide } from "./exact-json.js";
import type { Overview, OverviewNode } from "./shapes.js";

export type Tone = "good" | "warn" | "bad" | "none";

/** Controls, marks of direction, and what has no width. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u{fff9}-\u{fffb}]/gu;

/** A name or value as it can be shown. */
export function printable(text: string): string {
  return text.replace(UNSEEN, (mark) => `\\u{${(mark.codePointAt(0) ?? 0).toString(16)}}`);
}

/** The beginning of a long text. */
export function shortened(text: string, characters = 160): string {
  const points = [...text];
  return points.length <= characters ? text : `${points.slice(0, characters).join("")}…`;
}

export function count(value: Wide): string {
  const [whole = "", rest] = String(value).split(".");
  const grouped = whole.replace(/\B(?=(?:\d{3})+$)/g, "\u{202f}");
  return rest === undefined ? grouped : `${grouped}.${rest}`;
}

export function plural(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}

const STEPS: readonly (readonly [ms: number, unit: string])[] = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1000, "s"],
];

/** 90 061 000 ms is "1 d 1 h". */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  const at = STEPS.findIndex(([step]) => ms >= step);
  const [step, unit] = STEPS[at] as readonly [number, string];
  const whole = Math.floor(ms / step);
  const next = STEPS[at + 1];
  if (next === undefined) return `${whole} ${unit}`;
  const rest = Math.floor((ms % step) / next[0]);
  return rest === 0 ? `${whole} ${unit}` : `${whole} ${unit} ${rest} ${next[1]}`;
}

export function bytes(size: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  let left = size;
  for (; left >= 1024 && at < units.length - 1; at++) left /= 1024;
  return `${at === 0 ? left : left.toFixed(left < 10 ? 1 : 0)} ${units[at]}`;
}

/** A moment of Unix time, in the zone of whoever looks. */
export function moment(unixMs: Wide): string {
  const ms = Number(unixMs);
  if (ms === 0) return "–";
  const date = new Date(ms);
  const two = (number: number): string => String(number).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

export interface Verdict {
  readonly tone: Tone;
  readonly text: string;
}

/** What a node said of itself counts for so long. */
const HEARD_MAX_MS = 10_000;

export function isSilent({ ageMs }: OverviewNode): boolean {
  return ageMs === null || ageMs > HEARD_MAX_MS;
}

export function isReady(node: OverviewNode): boolean {
  return node.ready && !isSilent(node);
}

/** The cluster in one sentence, as the asked node sees it; null: it did not answer. */
export function verdictOf(overview: Overview | null, silentMs: number): Verdict {
  if (overview === null) {
    const since = silentMs > 0 ? ` for ${duration(silentMs)}` : "";
    return { tone: "bad", text: `This node has not answered${since}.` };
  }
  if (!overview.initialized) {
    return { tone: "warn", text: "This node does not know its cluster yet." };
  }
  const { nodes, partitions, partitionsWithoutLeader, partitionsUnderReplicated } = overview;
  const ready = nodes.filter(isReady).length;
  const readyText = `${ready} of ${plural(nodes.length, "node")} ready`;
  if (partitionsWithoutLeader > 0) {
    const which = `${partitionsWithoutLeader} of ${plural(partitions, "partition")}`;
    const has = partitionsWithoutLeader === 1 ? "has" : "have";
    return { tone: "bad", text: `${which} ${has} no known leader; ${readyText}.` };
  }
  if (ready < nodes.length) {
    return { tone: "warn", text: `Every partition has a leader, but only ${readyText}.` };
  }
  if (partitionsUnderReplicated > 0) {
    const which = plural(partitionsUnderReplicated, "partition");
    const has = partitionsUnderReplicated === 1 ? "has" : "have";
    return { tone: "warn", text: `${which} ${has} fewer live replicas than wanted.` };
  }
  if (overview.alarms.length > 0) {
    return {
      tone: "warn",
      text: `All nodes are ready; ${plural(overview.alarms.length, "note")}.`,
    };
  }
  const size = `${plural(nodes.length, "node")} ready, ${plural(partitions, "partition")} led`;
  return { tone: "good", text: `All is well: ${size}.` };
}
