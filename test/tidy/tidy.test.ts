/** The structure of the repository, held by tests: floors, packages, sizes, names, documents. */
import t from "tap";
import {
  FILE_LINES_MAX,
  ALLOWED,
  FLOORS,
  PACKAGES,
  checkClientTime,
  checkDials,
  checkHeader,
  checkImports,
  checkNames,
  checkSizes,
  findCycles,
} from "./rules.js";
import { FOLDER_FILES_MAX, ROOMS, checkFolders, checkRooms } from "./rooms.js";
import { checkCitations, readRegisters } from "./citations.js";
import { checkDocument, checkGlossary, checkMap } from "./documents.js";
import { unusedExports } from "./exports.js";
import { builtFiles, readText, trackedFiles } from "./sources.js";

/**
 * Exports of src/ that only tests, benchmarks or scripts import: fewer are welcome.
 */
const TEST_ONLY_EXPORTS_MAX = 98;

const files = trackedFiles();
const typescript = files.filter((path) => path.endsWith(".ts"));
const texts = new Map(typescript.map((path) => [path, readText(path)]));

function findings(check: (path: string, text: string) => string[]): string[] {
  return [...texts].flatMap(([path, text]) => check(path, text));
}

t.test("imports point down, packages stay in their folders", (t) => {
  t.same(findings(checkImports), []);
  for (const [room, allowed] of Object.entries(ALLOWED)) {
    const floor = FLOORS[room];
    if (floor === undefined) continue;
    for (const target of allowed) {
      const below = FLOORS[target];
      t.ok(
        below === undefined || below < floor || target === "ports.ts",
        `${room} imports ${target}`,
      );
    }
  }
  t.end();
});

t.test("the rooms of a folder have an order, and no folder is a wall of names", (t) => {
  t.same(findings(checkRooms), []);
  t.same(checkFolders(files), []);
  for (const [folder, floors] of Object.entries(ROOMS)) {
    for (const room of floors.flat()) {
      const at = `src/${folder}/${room}`;
      t.ok(
        files.some((path) => path === at || path.startsWith(`${at}/`)),
        `${at} is there`,
      );
    }
  }
  const up = 'import type { Group } from "../group/group.js";\n';
  t.equal(checkRooms("src/host/replication/x.ts", up).length, 1, "types point down as well");
  t.equal(checkRooms("src/host/leaders/x.ts", up).length, 0);
  t.equal(checkRooms("src/host/group/x.ts", 'import { a } from "../node.js";\n').length, 1);
  t.equal(checkRooms("src/host/attic/x.ts", "").length, 1, "a room without a floor");
  const many = Array.from({ length: FOLDER_FILES_MAX + 1 }, (_, at) => `src/a/${at}.ts`);
  t.equal(checkFolders(many).length, 1);
  t.equal(checkFolders([...many.slice(1), "src/a/b/c.ts"]).length, 0);
  t.end();
});

t.test("no import cycles, of types neither", (t) => {
  const sources = new Map([...texts].filter(([path]) => path.startsWith("src/")));
  t.same(findCycles(sources), []);
  t.end();
});

t.test("banned names and globals stay out (P-125, X-05, X-07)", (t) => {
  t.same(
    findings((path, text) => (path.startsWith("src/") ? checkNames(path, text) : [])),
    [],
  );
  t.end();
});

t.test("P-203 nodes find each other by their own look-up only", (t) => {
  t.same(findings(checkDials), []);
  const dial = 'import { connect as connectPlain } from "node:net";\n';
  const good = "const way = { host, port, lookup };\nreturn connectPlain(way);\n";
  t.same(checkDials("src/net/dial.ts", `${dial}${good}`), []);
  t.equal(checkDials("src/net/dial.ts", `${dial}connectPlain({ host, port });\n`).length, 1);
  const other = "const way = { host };\nconnectPlain(way);\n";
  t.equal(checkDials("src/net/dial.ts", `${dial}${other}`).length, 1);
  t.equal(checkDials("src/net/lane.ts", `${dial}${good}`).length, 1);
  t.equal(checkDials("src/net/lane.ts", 'import { Resolver } from "node:dns";\n').length, 1);
  t.equal(checkDials("src/net/resolve.ts", 'import { lookup } from "node:dns";\n').length, 1);
  t.equal(checkDials("src/rest/x.ts", `${dial}connectPlain({ host });\n`).length, 0);
  t.end();
});

t.test("time and chance of the client come through its platform", (t) => {
  t.same(findings(checkClientTime), []);
  const refused = [
    "const nowMs = performance.now();\n",
    "const stamp = Date.now();\n",
    "const timer = setTimeout(done, 5);\n",
    "setInterval(done, 5);\n",
    "setImmediate(() => done());\n",
    "clearTimeout(timer);\n",
    "const jitter = Math.random();\n",
    "const seconds = uptime();\n",
    'import { setTimeout as wait } from "node:timers/promises";\n',
  ];
  for (const text of refused) t.ok(checkClientTime("src/client/call/x.ts", text).length > 0, text);
  const [clock = ""] = refused;
  t.same(checkClientTime("src/client/time/system-platform.ts", clock), []);
  t.same(checkClientTime("src/cli/x.ts", clock), []);
  t.same(checkClientTime("src/client/x.ts", "// not setTimeout\nplatform.nowMs();\n"), []);
  t.end();
});

t.test("files, functions and lines keep their size", (t) => {
  t.same(findings(checkSizes), []);
  t.end();
});

t.test("each source file opens with what it is", (t) => {
  t.same(findings(checkHeader), []);
  t.end();
});

t.test("what src/ exports is imported, and little of it by tests alone", (t) => {
  const scripts = files.filter((path) => /\.(?:js|mjs)$/.test(path));
  const others = [...scripts, ...builtFiles()].map((path) => [path, readText(path)] as const);
  const { dead, testOnly } = unusedExports(new Map([...texts, ...others]));
  t.same(dead, [], "an export has a user");
  t.ok(testOnly.length <= TEST_ONLY_EXPORTS_MAX, `for tests alone:\n${testOnly.join("\n")}`);
  const sample = (user: string, text: string): readonly string[] => {
    const door = 'export { a } from "./a.js";\nexport * from "./b.js";\n';
    const found = unusedExports(
      new Map([
        ["src/x/a.ts", "export const a = 1;\n"],
        ["src/x/b.ts", "export interface B {}\nexport const c = (b: B): B => b;\n"],
        ["src/x/door.ts", door],
        [user, text],
      ]),
    );
    return [...found.dead.map((name) => `dead ${name}`), ...found.testOnly];
  };
  const dead3 = ["dead src/x/a.ts: a", "dead src/x/b.ts: c", "dead src/x/door.ts: a"];
  t.same(sample("src/y/y.ts", ""), dead3, "a type may serve its own file");
  t.same(sample("src/y/y.ts", 'import { a, type c } from "../x/door.js";\n'), []);
  t.same(sample("src/y/y.ts", 'import * as door from "../x/door.js";\n'), []);
  t.same(sample("src/y/y.ts", 'const door = await import("../x/door.js");\n'), []);
  const byTest = sample("test/y.ts", 'import { a as b, c } from "../src/x/door.js";\n');
  t.same(byTest, ["src/x/a.ts: a", "src/x/b.ts: c", "src/x/door.ts: a"]);
  t.end();
});

t.test("no registry host, no host path, no lockfile address", (t) => {
  const registry = ["registry.", "npmjs.", "yarnpkg."];
  const offenders: string[] = [];
  for (const path of files) {
    if (/\.(png|ico)$/.test(path) || path.startsWith("test/tidy/")) continue;
    const text = readText(path);
    if (
      text.includes(`${registry[0]}${registry[1]}`) ||
      text.includes(`${registry[0]}${registry[2]}`)
    ) {
      offenders.push(`${path}: names a package registry`);
    }
    if (/\/work\/(main|shared|\.library)/.test(text))
      offenders.push(`${path}: a path of one machine`);
    if (path === "package-lock.json" && /"resolved": "http/.test(text)) {
      offenders.push(`${path}: holds download addresses`);
    }
  }
  t.same(offenders, []);
  t.end();
});

t.test("versions are pinned exactly, and every dependency has a folder", (t) => {
  const manifest = JSON.parse(readText("package.json")) as {
    dependencies: Record<string, string>;
    devDependencies: Record<string, string>;
  };
  const all = { ...manifest.dependencies, ...manifest.devDependencies };
  for (const [name, version] of Object.entries(all)) {
    t.match(version, /^\d+\.\d+\.\d+$/, `${name} is pinned`);
  }
  for (const name of Object.keys(manifest.dependencies)) {
    t.ok(PACKAGES[name] !== undefined, `${name} has its folder`);
  }
  t.end();
});

t.test("the rules fire on what they are for", (t) => {
  t.same(checkImports("src/raft/x.ts", 'import { a } from "../host/a.js";\n').length, 1);
  t.same(checkImports("src/raft/x.ts", 'import fs from "node:fs";\n').length, 1);
  t.same(checkImports("src/rest/x.ts", 'import l from "node-lmdb";\n').length, 1);
  t.same(checkImports("src/disk/x.ts", 'import l from "node-lmdb";\n').length, 0);
  t.same(checkNames("src/host/x.ts", "const now = Date.now();\n").length, 1);
  t.same(checkNames("src/host/x.ts", '// Date is banned\nconst a = "Date";\n').length, 0);
  t.same(checkNames("src/server/util.ts", "").length, 1);
  t.same(checkNames("src/host/x.ts", "async function f() { await g(); }\n").length, 1);
  t.same(checkSizes("src/host/x.ts", "a\n".repeat(FILE_LINES_MAX + 1)).length, 1);
  const long = `function f() {\n${"  a();\n".repeat(80)}}\n`;
  t.same(checkSizes("src/host/x.ts", long).length, 1);
  t.same(checkHeader("src/host/x.ts", "const a = 1;\n").length, 1);
  t.same(checkHeader("src/host/x.ts", "/** An x. May call: base. */\n").length, 1);
  const cycle = new Map([
    ["src/a/a.ts", 'import { b } from "./b.js";\n'],
    ["src/a/b.ts", 'import { a } from "./a.js";\n'],
  ]);
  t.same(findCycles(cycle).length, 1);
  t.end();
});

t.test("nobody left the marks of a merge behind", (t) => {
  const marks = /^(?:<{7} |>{7} |={7}$)/m;
  const texts = files.filter((path) => !/\.(?:png|ico)$/.test(path));
  t.same(
    texts.filter((path) => marks.test(readText(path))),
    [],
  );
  t.match(`${"<".repeat(7)} HEAD`, marks);
  t.end();
});

t.test("links and paths of the documents lead somewhere, and the map names every room", (t) => {
  const places = new Set(files);
  for (const path of files) {
    for (let at = path.lastIndexOf("/"); at > 0; at = path.lastIndexOf("/", at - 1)) {
      places.add(path.slice(0, at));
    }
  }
  const exists = (path: string): boolean => places.has(path);
  const documents = files.filter((path) =>
    /^(docs\/.*|src\/(raft\/)?README|[A-Z]+)\.md$/.test(path),
  );
  t.same(
    documents.flatMap((path) => checkDocument(path, readText(path), exists)),
    [],
  );
  const has = (text: string): number => checkDocument("docs/a.md", text, exists).length;
  t.equal(has("[map](../src/README.md#rooms) and `src/host/` and `src/ports.ts`"), 0);
  t.equal(has("[map](../src/MAP.md)"), 1);
  t.equal(has("`src/host/nowhere.ts`"), 1);
  const map = readText("src/README.md");
  t.same(checkMap(map, ROOMS), []);
  t.equal(checkMap(map, { host: [["attic"]] }).length, 1);
  t.end();
});

t.test("the glossary lists no house word that the code has given up", (t) => {
  const glossary = readText("docs/glossary.md");
  const source = [...texts].filter(([path]) => path.startsWith("src/")).flat();
  t.same(checkGlossary(glossary, source.join("\n")), []);
  t.equal(
    checkGlossary("a tick (in code: *zweck*, or `TurnScheduler`)", source.join("\n")).length,
    1,
  );
  t.equal(checkGlossary("`Turn`, and a `Turnip` and `S8`", source.join("\n")).length, 1);
  t.end();
});

t.test("P-179 each number that is cited is defined", (t) => {
  const defined = readRegisters(readText("docs/pitfalls.md"), readText("docs/contract-rules.md"));
  t.same(defined.twice, [], "each is defined once");
  const offenders: string[] = [];
  for (const path of files) {
    const cites = /^(src|test|docs|scripts|perf)\/.*\.(ts|mjs|md)$|^[A-Z]+\.md$/.test(path);
    if (!cites || path.startsWith("test/tidy/")) continue;
    offenders.push(...checkCitations(path, readText(path), defined));
  }
  t.same(offenders, []);
  const has = (text: string): number => checkCitations("src/a.ts", text, defined).length;
  t.equal(has("/** P-001, S8, contract 5.2, 5.3 rule 3 and contract 11: fine. */"), 0);
  t.equal(has("/** P-999 */"), 1);
  t.equal(has("/** contract S99 */"), 1);
  t.equal(has("/** contract 5.2, 5.99 */"), 1);
  t.equal(has('namedCurve: "P-256"'), 0, "a curve");
  const cited = new Set<string>();
  for (const [path, text] of texts) {
    if (!path.startsWith("test/")) continue;
    for (const match of text.matchAll(/\bP-\d{3}\b/g)) cited.add(match[0]);
  }
  const open = [...defined.pitfalls].filter((id) => id.startsWith("P-") && !cited.has(id));
  t.comment(`without a living test: ${open.join(" ")}`);
  t.end();
});
