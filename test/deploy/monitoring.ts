/** The files of scripts/deploy/monitoring as tests read them. */
import { readText, root } from "../tidy/sources.js";
import { join } from "node:path";

export const RULES_PATH = join(root, "scripts/deploy/monitoring/rules.yaml");
/** Tests that look over hours have a file of their own: promtool takes a step for each interval of a file. */
export const RULE_TESTS = ["rules.test.yaml", "rules.hours.test.yaml"].map(
  (name) => `scripts/deploy/monitoring/${name}`,
);
export const RUNBOOKS_PATH = "scripts/deploy/README.md";

export interface Alert {
  readonly name: string;
  readonly expr: string;
  readonly severity: string;
  readonly runbook: string;
}

/** Every rule is an alert in one form; whatever has another one is not read, and so is missed. */
export function alertsOf(text: string): readonly Alert[] {
  const form =
    /^ {6}- alert: (\w+)\n {8}expr: (.+)\n(?: {8}for: \w+\n)? {8}labels:\n {10}severity: (\w+)\n {8}annotations:\n {10}summary: ".+"\n {10}runbook_url: (\S+)$/gm;
  return [...text.matchAll(form)].map(
    ([, name = "", expr = "", severity = "", runbook = ""]) =>
      ({ name, expr, severity, runbook }) as const,
  );
}

/** Alerts that a test expects to fire, and those that one expects to be silent from first to last. */
export function testedAlerts(text: string): {
  readonly fire: ReadonlySet<string>;
  readonly stay: ReadonlySet<string>;
} {
  const fire = new Set<string>();
  const stay = new Set<string>();
  for (const part of text.split(/^ {2}- name: /m).slice(1)) {
    const looks = [...part.matchAll(/alertname: (\w+)\n {8}exp_alerts:( \[\])?/g)];
    const names = new Set(looks.map(([, name = ""]) => name));
    for (const name of names) {
      const isQuiet = looks.every(([, looked, silent]) => looked !== name || silent !== undefined);
      if (isQuiet) stay.add(name);
      else fire.add(name);
    }
  }
  return { fire, stay };
}

/** Families that a query names, without the suffixes of a histogram. */
export function familiesIn(query: string): readonly string[] {
  const names = [...query.matchAll(/\b(?:svc|process|nodejs)_[a-z0-9_]+\b/g)];
  return names.map(([name]) => name.replace(/_(?:bucket|sum|count)$/, ""));
}

export function describedFamilies(): ReadonlySet<string> {
  const rows = readText("docs/metrics.md").matchAll(/^\| `(\w+)` \|/gm);
  return new Set([...rows].map(([, name = ""]) => name));
}

export interface Panel {
  readonly title: string;
  readonly type: string;
  readonly targets?: readonly { readonly expr: string }[];
}

export function panels(): readonly Panel[] {
  const text = readText("scripts/deploy/monitoring/dashboard.json");
  return (JSON.parse(text) as { readonly panels: readonly Panel[] }).panels;
}

/** A query of the dashboard as Grafana would send it. */
export function asked(expr: string): string {
  return expr
    .replaceAll("$job", "svc")
    .replaceAll("$instance", ".*")
    .replaceAll("$__rate_interval", "1m");
}

const UNIT_S: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600 };

/**
 * The rules for nodes that are scraped each second: what they look back over is a sixtieth (5 s at least), how long they wait a
 * three-hundredth (2 s at least). Nothing else differs.
 */
export function scaledRules(text: string): string {
  const shorter = (amount: string, unit: string, divisor: number, leastS: number): string =>
    `${Math.max(leastS, Math.ceil((Number(amount) * (UNIT_S[unit] ?? 1)) / divisor))}s`;
  return text
    .replace(/^( +for: )(\d+)([smh])$/gm, (_all, before: string, amount: string, unit: string) => {
      return before + shorter(amount, unit, 300, 2);
    })
    .replace(/\[(\d+)([smh])\]/g, (_all, amount: string, unit: string) => {
      return `[${shorter(amount, unit, 60, 5)}]`;
    });
}
