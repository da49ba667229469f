/**
 * Every release reads what each release before it wrote, and writes the same at that level: bytes
 * that were frozen with the release.
 */
import t from "tap";
import { PROGRAM, SINCE } from "../../src/base/levels.js";
import { VERSION } from "../../src/base/generated/version.js";
import { FORMATS } from "./formats/all.js";
import { freezeFormats, readAbout, readPart, releaseOf, releases } from "./frozen.js";

type Table = Readonly<Record<string, Readonly<Record<number, number>>>>;

/** A packed directory stands for it: `test/process/server/frozen-directory.test.ts`. */
const PACKED = new Set(["data directory"]);
const HINT = "a release that is not out yet: rm -r its folder here, npm run compat-freeze";
/** Since which protocol or level something is written. */
const TABLES: Readonly<Record<string, Table>> = {
  commands: SINCE.commands,
  stored: SINCE.stored,
  spoken: SINCE.spoken,
};

t.test("P-030 every release is frozen, this one too", (t) => {
  t.ok(releases().includes(releaseOf(VERSION)), "npm run compat-freeze");
  t.throws(() => freezeFormats(releaseOf(VERSION)), /never changes/);
  t.end();
});

for (const release of releases()) {
  const { level, protocol } = readAbout(release);
  const isSpoken = protocol >= PROGRAM.protocols.min;
  const isStored = level >= PROGRAM.levels.min;

  for (const [part, formats] of Object.entries(FORMATS)) {
    const wanted = part === "spoken" || part === "marked" ? isSpoken : isStored;
    if (!wanted) continue;
    t.test(`P-131 ${release}: ${part} are read, and written byte for byte`, (t) => {
      for (const { name, version, text, bytes } of readPart(release, part)) {
        const read = formats[name]?.read(bytes);
        // A later release may know more of it.
        t.hasStrict(JSON.parse(read?.text ?? "null"), JSON.parse(text), `${name}: read, ${HINT}`);
        t.strictSame(read?.write(), bytes, `${name} ${version}: written, ${HINT}`);
      }
      t.end();
    });
  }

  t.test(`P-030 ${release}: nothing that is written at its level is left out`, (t) => {
    for (const [part, table] of Object.entries(TABLES)) {
      const frozen = new Set(
        readPart(release, part).map(({ name, version }) => `${name.split(",")[0]} ${version}`),
      );
      const highest = part === "spoken" ? protocol : level;
      for (const [name, versions] of Object.entries(table)) {
        const sinces = Object.entries(versions).filter(([, since]) => since <= highest);
        const newest = sinces.at(-1)?.[0];
        if (newest === undefined || PACKED.has(name)) continue;
        t.ok(frozen.has(`${name} ${newest}`), `${part}: ${name} ${newest}`);
      }
    }
    t.end();
  });
}
