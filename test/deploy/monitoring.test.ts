/** Alert rules, their unit tests, and the dashboard, held against each other and against the metrics. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import t from "tap";
import { sectionOf } from "./runbooks/documented.js";
import { readText, root } from "../tidy/sources.js";
import {
  RULES_PATH,
  RULE_TESTS,
  RUNBOOKS_PATH,
  alertsOf,
  describedFamilies,
  familiesIn,
  panels,
  scaledRules,
  testedAlerts,
} from "./monitoring.js";

const rules = readText("scripts/deploy/monitoring/rules.yaml");
const tests = RULE_TESTS.map(readText).join("\n");

function promtool(...words: readonly string[]): { missing: boolean; status: number; text: string } {
  const { error, status, stdout, stderr } = spawnSync("promtool", words, { encoding: "utf8" });
  return { missing: error !== undefined, status: status ?? -1, text: `${stdout}${stderr}` };
}

t.test("every alert has a test in which it fires and one in which it stays silent", (t) => {
  const alerts = alertsOf(rules);
  t.equal(alerts.length, [...rules.matchAll(/- alert:/g)].length, "all have the one form");
  t.ok(alerts.length > 30);
  const { fire, stay } = testedAlerts(tests);
  const names = alerts.map(({ name }) => name).sort();
  t.same([...fire].sort(), names);
  t.same([...stay].sort(), names);
  t.equal(new Set(names).size, names.length, "no name twice");
  t.end();
});

t.test("an alert without one of its tests is missed", (t) => {
  const name = "SvcLogFull";
  const without = (kind: string): string => {
    const parts = tests.split(/^(?= {2}- name: )/m);
    return parts.filter((part) => !part.startsWith(`  - name: ${name} ${kind}`)).join("");
  };
  t.notOk(testedAlerts(without("fires")).fire.has(name));
  t.ok(testedAlerts(without("fires")).stay.has(name));
  t.notOk(testedAlerts(without("stays silent")).stay.has(name));
  t.end();
});

t.test("alerts name metrics that exist, a known severity, and a runbook that is there", (t) => {
  const known = describedFamilies();
  const headings = [...readText(RUNBOOKS_PATH).matchAll(/^### (.+)$/gm)].map(
    ([, heading = ""]) =>
      `${RUNBOOKS_PATH}#${heading.toLowerCase().replaceAll(",", "").replaceAll(" ", "-")}`,
  );
  const used = new Set<string>();
  for (const { name, expr, severity, runbook } of alertsOf(rules)) {
    for (const family of familiesIn(expr)) t.ok(known.has(family), `${name}: ${family}`);
    t.match(severity, /^(critical|warning|info)$/, name);
    t.ok(headings.includes(runbook), `${name}: ${runbook}`);
    used.add(runbook);
    const section = sectionOf(RUNBOOKS_PATH, titleOf(runbook, headings));
    t.ok(section.includes(name), `its runbook names ${name}`);
  }
  // What an operator sets out to do by himself has a runbook and no alert.
  const alerted = headings.filter((runbook) =>
    /^\*Svc/m.test(sectionOf(RUNBOOKS_PATH, titleOf(runbook, headings))),
  );
  t.same([...used].sort(), alerted.sort(), "no runbook that names alerts is without one");
  t.end();
});

function titleOf(runbook: string, headings: readonly string[]): string {
  const titles = [...readText(RUNBOOKS_PATH).matchAll(/^### (.+)$/gm)];
  return titles[headings.indexOf(runbook)]?.[1] ?? "";
}

t.test("promtool finds no fault in the rules, and their unit tests pass", (t) => {
  const checked = promtool("check", "rules", RULES_PATH);
  if (checked.missing) t.pass("skipped: promtool is not installed");
  else {
    t.equal(checked.status, 0, checked.text);
    const run = promtool("test", "rules", ...RULE_TESTS.map((path) => join(root, path)));
    t.equal(run.status, 0, run.text);
  }
  t.end();
});

t.test("rules with shorter times differ in times only", (t) => {
  const shorter = scaledRules(rules);
  t.match(shorter, /\n {8}for: 12s\n/);
  t.match(shorter, /rate\(svc_wal_sync_duration_seconds_bucket\[5s\]\)/);
  t.notMatch(shorter, /(?:for: |\[)\d+[mh]/);
  const timeless = (text: string): string =>
    text.replace(/for: \w+/g, "for").replace(/\[\w+\]/g, "[]");
  t.equal(timeless(shorter), timeless(rules));
  t.end();
});

t.test("the dashboard is what its table makes, and each query names metrics that exist", (t) => {
  const words = [join(root, "scripts/monitoring.mjs"), "--check"];
  const made = spawnSync(process.execPath, words, { encoding: "utf8" });
  t.equal(made.stdout + made.stderr, "");
  const known = describedFamilies();
  const shown = new Set<string>();
  for (const { title, targets = [] } of panels()) {
    for (const { expr } of targets) {
      const families = familiesIn(expr);
      t.ok(families.length > 0, title);
      for (const family of families) {
        shown.add(family);
        t.ok(known.has(family), `${title}: ${family}`);
      }
    }
  }
  t.ok(shown.size > 35, `${shown.size} families are shown`);
  t.end();
});
