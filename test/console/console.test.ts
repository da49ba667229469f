/**
 * The web console in a real Chromium, against three real nodes: what each page shows, what each role may do, what becomes of
 * names that mean harm, who can use it, and what it does while nobody looks.
 */
import t, { type Test } from "tap";
import { audit, findings, nameless } from "./audit.js";
import { Browser, findBrowser } from "./browser.js";
import { ConsoleNodes, type Role, tokenOf } from "./nodes.js";
import type { Tab } from "./tab.js";

t.setTimeout(240_000);

const PROGRAM = findBrowser();
const skip = PROGRAM === null ? "there is no Chromium here (SVC_BROWSER names one)" : false;
const TITLES = ["Overview", "Nodes", "Partitions", "Ranges", "Locks"];
TITLES.push("Sequences", "Keys", "Backups", "Metrics", "About");
const IMAGE = '<img src=x onerror="window.wasHarmed = 1">';
const TURNED = "a\u202eb\u2066c\u0000d";
const TURNED_SHOWN = "a\\u{202e}b\\u{2066}c\\u{0}d";
const LONG = "k/" + "x".repeat(1022);

interface Stage {
  readonly browser: Browser;
  readonly nodes: ConsoleNodes;
}

let stage: Stage;

/** A tab in which somebody of this role is signed in, at a page of the console. */
async function tabOf(t: Test, role: Role, page = "overview", base = stage.nodes.bases[0]) {
  const tab = await stage.browser.open();
  t.teardown(() => tab.close());
  await tab.go(`${base}/console/#/${page}`);
  await tab.enter("Token", tokenOf(role));
  await tab.press("Enter");
  await tab.until(`!document.body.innerText.includes("Sign in")`, "signed in");
  return tab;
}

async function isClean(t: Test, tab: Tab): Promise<void> {
  t.strictSame(await tab.refusals(), [], "the policy had nothing to refuse");
  t.strictSame(tab.errors, [], "no script threw");
  const origin = await tab.value<string>("location.origin");
  const foreign = tab.requests.filter((url) => !url.startsWith(`${origin}/`));
  t.strictSame(
    foreign,
    ["about:blank"].filter((url) => foreign.includes(url)),
    "own origin only",
  );
  t.ok(tab.mostOpen <= 2, `one round, and what somebody asked for: ${tab.mostOpen} at a time`);
  t.equal(await tab.value("document.cookie"), "", "no cookie");
  t.notOk(await tab.value("window.wasHarmed"), "no name became a script");
}

async function goTo(tab: Tab, title: string): Promise<void> {
  await tab.click("nav a", title);
  await tab.until(`document.querySelector("h1").textContent === ${JSON.stringify(title)}`);
}

t.before(async () => {
  if (PROGRAM === null) return;
  const nodes = await ConsoleNodes.start();
  stage = { browser: Browser.start(PROGRAM), nodes };
  await nodes.setMany(
    Array.from({ length: 250 }, (_, at) => `many/${String(at).padStart(3, "0")}`),
    "v",
  );
  await nodes.set(`hostile/${IMAGE}`, IMAGE);
  await nodes.set(`hostile/${TURNED}`, TURNED);
  await nodes.set(LONG, "long");
  await nodes.set("big", "y".repeat(5000));
  await nodes.set("binary", Buffer.from([0xff, 0xfe, 0x00, 0x41]));
  await nodes.lock("held", "alice");
  await nodes.lock(IMAGE, `${IMAGE}${TURNED}`);
  const wide = { name: "wide", initialValue: "9223372036854775806", increment: 1, durability: 1 };
  await nodes.post("/v1/sequences/create", wide);
});

t.test("nobody is shown anything before the node knows who asks", { skip }, async (t) => {
  const tab = await stage.browser.open();
  t.teardown(() => tab.close());
  await tab.go(`${stage.nodes.bases[0]}/console`);
  await tab.sees("Not signed in.");
  t.same(await tab.focused(), "Token", "the field has the focus");
  await tab.type("not-a-token-of-anybody");
  await tab.press("Enter");
  await tab.sees("The node does not know this token.");
  t.notMatch(await tab.text(), /All is well/);
  await tab.type(tokenOf("reader"));
  await tab.press("Enter");
  await tab.sees("All is well: 3 nodes ready, 17 partitions led.");
  t.equal(await tab.value("sessionStorage.length"), 0, "a token stays in the page");
  await tab.click("button", "Sign out");
  await tab.sees("Not signed in.");
  await tab.click("label", " keep it");
  await tab.enter("Token", tokenOf("reader"));
  await tab.press("Enter");
  await tab.sees("All is well");
  t.equal(await tab.value("sessionStorage.length"), 1, "unless its owner wants it kept");
  await tab.value("location.reload()");
  await tab.until(`document.querySelectorAll("nav a").length === ${TITLES.length}`);
  await tab.sees("All is well");
  await isClean(t, tab);
});

t.test("every page shows what it is for, for everybody, at any width", { skip }, async (t) => {
  const tab = await tabOf(t, "admin");
  const wanted: Readonly<Record<string, RegExp>> = {
    Overview: /Nodes ready\s+3 of 3[^]*Partitions led\s+17 of 17[^]*Nothing to look at/,
    Nodes: /Members of the cluster[^]*1\s+✓\s?ready\s+Voter[^]*3\s+✓\s?ready/,
    Partitions: /16 data partitions, all in order; every voter hosts all[^]*✓\s?in order\s+node \d/,
    Ranges: /No key space is registered/,
    Locks: /Name of the lock[^]*Locks that begin with/,
    Sequences: /Name of the sequence/,
    Keys: /Keys that begin with/,
    Backups: /There is no backup/,
    Metrics: /Requests per second[^]*Node 3[^]*Heap\s+[\d.]+ MiB/,
    About: /All heard nodes run version \d[^]*The cluster is at level 2/,
  };
  for (const title of TITLES) {
    await tab.size(1280, 900);
    await goTo(tab, title);
    const pattern = String(wanted[title]);
    await tab.until(
      `${pattern}.test(document.querySelector("main").innerText)`,
      `${title} ${pattern}`,
    );
    t.match(await tab.value("document.title"), new RegExp(`^${title}`));
    t.equal(await tab.focused(), title, "a screen reader hears where it is");
    t.strictSame(await nameless(tab), [], `${title}: what can be operated has a name`);
    for (const scheme of ["light", "dark"] as const) {
      await tab.colours(scheme);
      for (const width of [1280, 320]) {
        await tab.size(width, 900);
        t.strictSame(await findings(tab), [], `${title}, ${scheme}, ${width} wide`);
      }
    }
  }
  t.equal(tab.mostOpen, 1, "one request at a time");
  await isClean(t, tab);
});

t.test("names that mean harm are text (P-201)", { skip }, async (t) => {
  const tab = await tabOf(t, "writer", "keys");
  await tab.size(320, 900);
  await tab.enter("Keys that begin with", "hostile/");
  await tab.press("Enter");
  await tab.sees(`hostile/${IMAGE}`);
  await tab.sees(`hostile/${TURNED_SHOWN}`);
  await tab.click("td button", "hostile/<img");
  await tab.until(`document.querySelector("pre")?.textContent === ${JSON.stringify(IMAGE)}`);
  await tab.click("td button", "hostile/a");
  await tab.until(`document.querySelector("pre")?.textContent === ${JSON.stringify(TURNED_SHOWN)}`);
  t.strictSame(await audit(tab), []);
  await tab.enter("Keys that begin with", "k/");
  await tab.press("Enter");
  await tab.click("td button", "k/xxx");
  await tab.until(`document.querySelector(".facts").textContent.includes(${JSON.stringify(LONG)})`);
  t.strictSame(await audit(tab), [], "1,024 bytes in 320 pixels");
  await goTo(tab, "Locks");
  await tab.enter("Name of the lock", IMAGE);
  await tab.press("Enter");
  await tab.sees(TURNED_SHOWN);
  t.equal((await tab.text(".facts")).split(IMAGE).length, 3, "name and holder");
  t.equal(await tab.value("document.images.length"), 0);
  await tab.click("button", "Release it");
  await tab.until(`document.querySelector("dialog")?.innerText.includes(${JSON.stringify(IMAGE)})`);
  t.strictSame(await audit(tab), [], "the question");
  await isClean(t, tab);
  const markup = `(() => { try { document.body.innerHTML = "<b>x</b>"; } catch (error) { return error.name; } })()`;
  t.equal(await tab.value(markup), "TypeError", "no text becomes markup, by mistake either");
});

t.test("keys: pages of a hundred, text and bytes, no more than 4 KiB", { skip }, async (t) => {
  const tab = await tabOf(t, "reader", "keys");
  const rows = (): Promise<number> => tab.value(`document.querySelectorAll("tbody tr").length`);
  await tab.enter("Keys that begin with", "many/");
  await tab.press("Enter");
  await tab.sees("Page 1: 100 keys.");
  t.equal(await rows(), 100);
  await tab.click("button", "Next page");
  await tab.sees("Page 2: 100 keys.");
  await tab.sees("many/199");
  await tab.click("button", "Next page");
  await tab.sees("Page 3: 50 keys.");
  t.equal(
    await tab.value(`document.querySelectorAll("tbody tr")[49].cells[0].innerText`),
    "many/249",
  );
  t.ok(await tab.value(`[...document.querySelectorAll("button")].at(-1).disabled`), "the last one");
  await tab.click("button", "Previous page");
  await tab.sees("Page 2: 100 keys.");
  await tab.enter("Keys that begin with", "bi");
  await tab.press("Enter");
  await tab.click("td button", "binary");
  await tab.sees("0000  ff fe 00 41");
  t.ok(await tab.value(`document.querySelector(".value button").disabled`), "it is no text");
  await tab.click("td button", "big");
  await tab.sees("904 B more are not shown.");
  t.equal((await tab.text("pre")).length, 4096);
  await tab.click("button", "Hexadecimal");
  await tab.sees("0ff0  79 79");
  await tab.enter("Keys that begin with", "nothing/");
  await tab.press("Enter");
  await tab.sees("No key begins like this.");
  await isClean(t, tab);
});

t.test(
  "locks: seen by a reader, released by a writer, and only what was seen",
  { skip },
  async (t) => {
    const reader = await tabOf(t, "reader", "locks");
    const look = async (tab: Tab, name: string): Promise<void> => {
      await tab.enter("Name of the lock", name);
      await tab.press("Enter");
    };
    await look(reader, "nobody's");
    await reader.sees("Not found: nobody holds this lock");
    await look(reader, "held");
    await reader.sees("alice");
    t.match(
      await reader.text(".facts"),
      /Holder\s+alice[^]*Fencing token\s+\d+[^]*Lease left\s+\d+ min/,
    );
    const release = async (tab: Tab): Promise<void> => {
      await tab.click("button", "Release it");
      await tab.until(`document.querySelector("dialog[open]")`);
      t.ok(
        await tab.value(`document.querySelector("dialog .danger").disabled`),
        "not by one click",
      );
      await tab.type("release");
      await tab.press("Enter");
    };
    await release(reader);
    await reader.sees("This needs the role writer.");
    await reader.until(`document.querySelector(".found .danger").disabled`, "the button is off");
    const writer = await tabOf(t, "writer", "locks");
    await look(writer, "held");
    await writer.sees("alice");
    const late = await tabOf(t, "writer", "locks");
    await look(late, "held");
    await late.sees("alice");
    await release(writer);
    await writer.sees("It was released.");
    await stage.nodes.lock("held", "bob");
    await release(late);
    await late.sees("somebody else holds it now");
    await look(late, "held");
    await late.sees("bob");
    for (const tab of [reader, writer, late]) await isClean(t, tab);
  },
);

t.test(
  "locks: listed by prefix, and a grant is ended by force by an admin, with a reason",
  { skip },
  async (t) => {
    for (const name of ["force/a", "force/b", `force/${IMAGE}`])
      await stage.nodes.lock(name, "eve");
    const reader = await tabOf(t, "reader", "locks");
    await reader.enter("Locks that begin with", "force/");
    await reader.press("Enter");
    await reader.sees("3 locks.");
    t.match(await reader.text("table"), /Holder[^]*force\/a\s+eve\s+\d+\s+\d+ min/);
    t.equal(await reader.value("document.images.length"), 0);
    t.strictSame(await audit(reader), [], "the list");
    const force = async (tab: Tab, reason: string): Promise<void> => {
      await tab.click("button", "End it by force");
      await tab.until(`document.querySelector("dialog[open]")`);
      t.ok(await tab.value(`document.querySelector("dialog .danger").disabled`), "not at once");
      if (reason !== "") await tab.enter("Reason", reason);
      await tab.enter("Type “force” to go on", "force");
      await tab.press("Enter");
    };
    await reader.click("td button", "force/a");
    await reader.sees("Lease left");
    await force(reader, "why");
    await reader.sees("This needs the role admin.");
    const admin = await tabOf(t, "admin", "locks");
    await admin.enter("Locks that begin with", "force/");
    await admin.press("Enter");
    await admin.click("td button", "force/b");
    await admin.until(`document.querySelector(".found .danger")`);
    await force(admin, "");
    await admin.sees("a reason is needed");
    await force(admin, "it hangs, é");
    await admin.sees("The grant was ended: row");
    await admin.sees("2 locks.");
    t.strictSame(await audit(admin), []);
    for (const tab of [reader, admin]) await isClean(t, tab);
  },
);

t.test("sequences: 64 bits, exactly", { skip }, async (t) => {
  const tab = await tabOf(t, "reader", "sequences");
  await tab.enter("Name of the sequence", "wide");
  await tab.press("Enter");
  await tab.until(
    `document.querySelector(".facts")?.textContent.replace(/\\s/g, "").includes("9223372036854775806")`,
  );
  await tab.enter("Name of the sequence", "none");
  await tab.press("Enter");
  await tab.sees("Not found: NotFound.");
  await isClean(t, tab);
});

t.test("backups and the level: for admins, and whoever is none hears it", { skip }, async (t) => {
  const reader = await tabOf(t, "reader", "backups");
  await reader.sees("This needs the role admin.");
  await reader.click("button", "Take a full backup");
  await reader.click("dialog button", "Take it");
  await reader.until(
    `document.querySelector("button:disabled")?.textContent.includes("needs admin")`,
  );
  await goTo(reader, "About");
  await reader.click("button", "Finalize");
  await reader.until(`document.querySelector("dialog[open]")`);
  await reader.type("finalize");
  await reader.press("Enter");
  await reader.sees("This needs the role admin.");
  const admin = await tabOf(t, "admin", "backups");
  await admin.sees("There is no backup.");
  await admin.click("button", "Take a full backup");
  await admin.click("dialog button", "Cancel");
  await admin.until(`document.querySelector("dialog") === null`);
  t.match(await admin.text(), /There is no backup/, "no is no");
  await admin.click("button", "Take a full backup");
  await admin.click("dialog button", "Take it");
  await admin.sees("was taken.");
  await admin.sees("✓whole");
  await admin.click("td button");
  await admin.sees("What a restore of it reads");
  t.strictSame(await audit(admin), []);
  await admin.click("button", "Take an incremental");
  await admin.click("dialog button", "Take it");
  await admin.until(
    `document.querySelectorAll(".table tbody")[0].rows.length === 2`,
    "two backups",
  );
  await admin.click("button", "What would a collection");
  await admin.sees("A collection would remove 0 things");
  await goTo(admin, "About");
  await admin.click("button", "Finalize");
  await admin.until(`document.querySelector("dialog[open]")`);
  await admin.type("finalize");
  await admin.press("Enter");
  await admin.sees("AlreadyFinalized: the cluster is at level 2.");
  for (const tab of [reader, admin]) await isClean(t, tab);
});

t.test("a keyboard is enough", { skip }, async (t) => {
  const tab = await tabOf(t, "writer");
  await tab.sees("All is well");
  const tabTo = async (wanted: string): Promise<void> => {
    for (let press = 0; press < 40; press++) {
      if ((await tab.focused()).startsWith(wanted)) return;
      await tab.press("Tab");
    }
    t.fail(`${wanted} cannot be reached`);
  };
  await tab.value("document.activeElement.blur()");
  await tab.press("Tab");
  t.equal(await tab.focused(), "Skip to the content");
  const shown = await tab.value(`document.activeElement.getBoundingClientRect().x >= 0`);
  t.ok(shown, "and it is seen");
  await tab.press("Enter");
  t.equal(await tab.focused(), "Overview", "the heading");
  await tab.press("Tab", true);
  await tabTo("Locks");
  await tab.press("Enter");
  await tab.until(`document.querySelector("h1").textContent === "Locks"`);
  await tabTo("Name of the lock");
  await tab.type("held");
  await tab.press("Enter");
  await tab.sees("bob");
  await tabTo("Release it");
  await tab.press("Enter");
  await tab.until(`document.querySelector("dialog[open]")`);
  t.equal(await tab.focused(), "Type “release” to go on");
  for (let press = 0; press < 6; press++) {
    await tab.press("Tab");
    const isInside = `document.activeElement === document.body || document.activeElement.closest("dialog") !== null`;
    t.ok(await tab.value(isInside), "the question keeps the focus");
  }
  await tab.press("Escape");
  await tab.until(`document.querySelector("dialog") === null`);
  t.match(await tab.focused(), /^Release it/, "and gives it back");
  await goTo(tab, "Keys");
  await tabTo("Keys that begin with");
  await tab.type("big");
  await tabTo("Show");
  await tab.press("Enter");
  await tab.sees("1 key.");
  await tabTo("big");
  await tab.press(" ");
  await tab.sees("904 B more");
  t.equal(await tab.focused(), "Value");
  await isClean(t, tab);
});

/** A hundred at a time, and the ill ones first. */
async function manyPartitions(t: Test): Promise<void> {
  const tab = await tabOf(t, "reader");
  await tab.sees("Asked node");
  const leader = await tab.value(`fetch("/v1/cluster/overview", {
    headers: { authorization: "Bearer ${tokenOf("reader")}" },
  }).then((answer) => answer.json()).then(({ nodes }) => nodes[0].clientEndpoint)`);
  const ids = Array.from({ length: 4096 }, (_, at) => at + 1);
  const common = { state: "Active", generation: 1, effectiveReplicationFactor: 0, replicas: [] };
  const partitions = ids.map((partitionId) => ({ partitionId, hostedLocally: true, ...common }));
  const leaders = ids
    .filter((partitionId) => partitionId !== 3000)
    .map((partitionId) => ({ partitionId, endpoint: leader }));
  const answers = { replicationFactor: 0, rebalancerEnabled: false, partitions, leaders };
  const paths = ["*/v1/cluster/placement", "*/v1/cluster/routing"];
  await tab.answerWith(paths, JSON.stringify(answers));
  await goTo(tab, "Partitions");
  await tab.sees("4\u{202f}096 data partitions, 1 out of order");
  const rows = `document.querySelector("tbody").rows`;
  t.equal(await tab.value(`${rows}.length`), 100);
  t.match(await tab.value(`${rows}[0].innerText`), /3000\s+✕\s?no leader/);
  await tab.click("button", "Show more");
  await tab.until(`${rows}.length === 200`);
  const first = await tab.value(`window.firstRow = ${rows}[1], window.firstRow.innerText`);
  const before = tab.requests.length;
  await tab.until(`window.firstRow.isConnected`);
  while (tab.requests.length < before + 4) await new Promise((go) => setTimeout(go, 50));
  t.equal(
    await tab.value(`${rows}[1] === window.firstRow && ${rows}[1].innerText`),
    first,
    "in place",
  );
  t.strictSame(await audit(tab), []);
}

/** Over TLS, for the same callers. */
async function ownPort(t: Test): Promise<void> {
  const tab = await tabOf(t, "reader", "nodes", stage.nodes.own);
  await tab.sees("Members of the cluster");
  await isClean(t, tab);
}

/** As if another tab were in front of it, or no longer. */
function hide(tab: Tab, isHidden: boolean): Promise<unknown> {
  const property = `{ value: ${isHidden}, configurable: true }`;
  return tab.value(`Object.defineProperty(document, "hidden", ${property});
    document.dispatchEvent(new Event("visibilitychange"))`);
}

t.test("nodes that end while somebody looks, and somebody else does not", { skip }, async (t) => {
  const away = await tabOf(t, "reader");
  const tab = await tabOf(t, "reader", "nodes");
  await tab.sees("All is well");
  await away.sees("All is well");
  await hide(away, true);
  await stage.nodes.servers[2]?.kill();
  const before = away.requests.length;
  // It takes some time until a node counts as silent: meanwhile the rest is looked at.
  await t.test("thousands of partitions", manyPartitions);
  await t.test("the console's own port", ownPort);
  await tab.until(
    `!document.querySelector("tbody").rows[2].innerText.includes("✓")`,
    "node 3 is silent",
  );
  await tab.sees("Every partition has a leader, but only 2 of 3 nodes ready.");
  t.strictSame(await audit(tab), []);
  await goTo(tab, "Overview");
  await tab.until(`document.querySelectorAll(".alarms li").length > 0`, "it says what to look at");
  t.strictSame(await audit(tab), []);
  // A round may have been under way when nobody looked any more.
  t.ok(away.requests.length <= before + 1, "whoever does not look asks nothing");
  await hide(away, false);
  await away.sees("only 2 of 3 nodes ready");
  await isClean(t, away);
  await stage.nodes.servers[0]?.kill();
  await tab.sees("This node has not answered");
  t.strictSame(await audit(tab), []);
  await goTo(tab, "Keys");
  await tab.enter("Keys that begin with", "big");
  await tab.press("Enter");
  await tab.sees("It was not done: the node does not answer.");
});

t.test("browser and nodes end", { skip }, async () => {
  await stage.browser.close();
  await stage.nodes.end();
});
