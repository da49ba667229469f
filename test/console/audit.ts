/**
 * Whether a page can be used by people who see badly, or not at all, or have no mouse: what of WCAG 2.2 a program can tell.
 *
 * `SVC_AXE` names a file of axe-core (axe.min.js): then its rules are asked too.
 */
import { readFileSync } from "node:fs";
import type { Tab } from "./tab.js";

const NAMED = [
  "button",
  "link",
  "textbox",
  "combobox",
  "checkbox",
  "dialog",
  "table",
  "navigation",
];

/** In the page: findings as texts. */
const LOOK = `(() => {
  const findings = [];
  const seen = [...document.querySelectorAll("body *")].filter((one) => one.checkVisibility());
  const label = (one) => one.tagName.toLowerCase() + " " + (one.textContent ?? "").slice(0, 30);
  const number = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => {
      const part = c / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = (one) => {
    for (let at = one; at !== null; at = at.parentElement) {
      const colour = number(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  let texts = 0;
  for (const one of seen) {
    const own = [...one.childNodes].some((n) => n.nodeType === 3 && n.data.trim() !== "");
    if (!own || one.matches(":disabled, option, noscript")) continue;
    texts++;
    const { color, fontSize, fontWeight } = getComputedStyle(one);
    const [a, b] = [light(number(color)), light(ground(one))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const size = parseFloat(fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(fontWeight) >= 700);
    if (ratio < (isLarge ? 3 : 4.5)) findings.push("1.4.3 contrast " + ratio.toFixed(2) + ": " + label(one));
  }
  if (texts < 10) findings.push("nothing was looked at");
  for (const one of seen) {
    if (!one.matches("input, select, button")) continue;
    if (one.matches(":disabled, [type=checkbox]")) continue;
    const { borderTopColor, borderTopWidth, backgroundColor } = getComputedStyle(one);
    if (borderTopWidth === "0px") continue;
    const outer = ground(one.parentElement);
    const best = Math.max(...[borderTopColor, backgroundColor].map((c) => {
      const [a, b] = [light(number(c)), light(outer)].sort((x, y) => y - x);
      return (a + 0.05) / (b + 0.05);
    }));
    if (best < 3) findings.push("1.4.11 border of a control " + best.toFixed(2) + ": " + label(one));
  }
  const ids = seen.map((one) => one.id).filter(Boolean);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) findings.push("an id twice: " + id);
  for (const name of ["aria-labelledby", "aria-describedby", "for"]) {
    for (const one of document.querySelectorAll("[" + name + "]")) {
      const target = one.getAttribute(name);
      if (document.getElementById(target) === null) findings.push(name + " names nobody: " + target);
    }
  }
  const headings = seen.filter((one) => /^H[1-6]$/.test(one.tagName) && one.closest("dialog") === null);
  const levels = headings.map((one) => Number(one.tagName[1]));
  if (levels.filter((level) => level === 1).length !== 1) findings.push("1.3.1 not one h1");
  levels.forEach((level, at) => {
    if (at > 0 && level > levels[at - 1] + 1) findings.push("1.3.1 a level is left out: " + label(headings[at]));
  });
  for (const one of seen.filter((one) => one.tagName === "TABLE")) {
    if (one.caption === null) findings.push("1.3.1 a table without a caption");
    for (const head of one.querySelectorAll("th")) if (head.scope === "") findings.push("1.3.1 a head without scope");
  }
  for (const one of seen) {
    if (one.matches("a, button, input, select") && !one.closest("p")) {
      const { width, height } = one.getBoundingClientRect();
      const isText = one.matches(".link, .skip") || one.type === "checkbox";
      if (!isText && (width < 24 || height < 24)) findings.push("2.5.8 too small: " + label(one));
    }
    if (one.tabIndex > 0) findings.push("2.4.3 an order of its own: " + label(one));
    const { overflowY } = getComputedStyle(one);
    const scrolls = one.scrollHeight > one.clientHeight + 1 && ["auto", "scroll"].includes(overflowY);
    if (scrolls && one.tabIndex < 0) findings.push("2.1.1 scrolls by mouse alone: " + label(one));
  }
  if (document.querySelectorAll("main").length !== 1) findings.push("not one main");
  if (document.documentElement.lang === "") findings.push("3.1.1 no language");
  if (document.title === "") findings.push("2.4.2 no title");
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth > clientWidth) findings.push("1.4.10 scrolls sideways: " + scrollWidth + " of " + clientWidth);
  return findings;
})()`;

async function axeFindings(tab: Tab, path: string): Promise<readonly string[]> {
  if (!(await tab.value<boolean>(`"axe" in window`))) {
    await tab.value(`${readFileSync(path, "utf8")};0`);
  }
  return tab.value(`axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) =>
    violations.map(({ id, nodes }) => "axe " + id + ": " + nodes.map((one) => one.html).join(" | "))
  )`);
}

/** What can be operated and has no name for whoever cannot see it. */
export async function nameless(tab: Tab): Promise<readonly string[]> {
  const told = await tab.operable();
  const unnamed = told.filter(({ role, name }) => NAMED.includes(role) && name.trim() === "");
  return unnamed.map(({ role }) => `4.1.2 a ${role} without a name`);
}

/** What is wrong with what the tab shows now, in these colours and at this width. */
export async function findings(tab: Tab): Promise<readonly string[]> {
  const found = await tab.value<readonly string[]>(LOOK);
  const axe = process.env["SVC_AXE"];
  return axe === undefined ? found : [...found, ...(await axeFindings(tab, axe))];
}

/** All of it. */
export async function audit(tab: Tab): Promise<readonly string[]> {
  return [...(await findings(tab)), ...(await nameless(tab))];
}
