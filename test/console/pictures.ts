/**
 * `npm run pictures`: the pictures of docs/console.md, of three real nodes with some traffic, at two widths.
 *
 * Owns docs/pictures. Invariants: 1. A picture is at most PICTURE_MAX_BYTES.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../tidy/sources.js";
import { Browser, findBrowser } from "./browser.js";
import { ConsoleNodes, tokenOf } from "./nodes.js";
import type { Tab } from "./tab.js";

const PICTURE_MAX_BYTES = 100 * 1024;
const TRAFFIC_MS = 45_000;
const WIDE = 1280;
const NARROW = 320;

async function take(tab: Tab, name: string, width: number, height: number): Promise<void> {
  await tab.size(width, height);
  const picture = await tab.picture();
  if (picture.length > PICTURE_MAX_BYTES) throw new Error(`${name}: ${picture.length} bytes`);
  writeFileSync(join(root, "docs", "pictures", `console-${name}-${width}.png`), picture);
  process.stdout.write(`${name} ${width}: ${picture.length} bytes\n`);
}

/** Writes and reads, now more and now less, for as long as a curve takes to be one. */
async function traffic(nodes: ConsoleNodes): Promise<void> {
  const end = performance.now() + TRAFFIC_MS;
  for (let at = 0; performance.now() < end; at++) {
    const wave = 1 + Math.sin(performance.now() / 6000);
    await nodes.set(`orders/${String(at % 60).padStart(4, "0")}`, `{"order":${at},"state":"paid"}`);
    await new Promise((resolve) => setTimeout(resolve, 5 + 40 * wave));
  }
}

async function show(tab: Tab, page: string): Promise<void> {
  await tab.click("nav a", page);
  await tab.until(`document.querySelector("h1").textContent === ${JSON.stringify(page)}`);
}

async function run(browser: Browser, nodes: ConsoleNodes): Promise<void> {
  const tab = await browser.open();
  await tab.go(`${nodes.bases[0]}/console/#/overview`);
  await tab.enter("Token", tokenOf("admin"));
  await tab.press("Enter");
  await tab.sees("All is well");
  await nodes.lock("jobs/nightly-report", "worker-7");
  await traffic(nodes);
  await take(tab, "overview", WIDE, 800);
  await tab.colours("dark");
  await take(tab, "overview", NARROW, 640);
  await tab.size(WIDE, 800);
  await show(tab, "Partitions");
  await tab.sees("16 data partitions");
  await take(tab, "partitions", WIDE, 560);
  await tab.colours("light");
  await take(tab, "partitions", NARROW, 640);
  await tab.size(WIDE, 800);
  await show(tab, "Locks");
  await tab.enter("Name of the lock", "jobs/nightly-report");
  await tab.press("Enter");
  await tab.click("button", "Release it");
  await tab.type("release");
  await take(tab, "locks", WIDE, 640);
  await take(tab, "locks", NARROW, 640);
  await tab.press("Escape");
  await show(tab, "Keys");
  await tab.enter("Keys that begin with", "orders/");
  await tab.press("Enter");
  await tab.sees("orders/0001");
  await take(tab, "keys", NARROW, 640);
  await take(tab, "keys", WIDE, 640);
}

const program = findBrowser();
if (program === null) throw new Error("there is no Chromium here (SVC_BROWSER names one)");
mkdirSync(join(root, "docs", "pictures"), { recursive: true });
const nodes = await ConsoleNodes.start();
const browser = Browser.start(program);
try {
  await run(browser, nodes);
} finally {
  await browser.close();
  await nodes.end();
}
