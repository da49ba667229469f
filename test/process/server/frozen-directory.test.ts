/** A node starts on the data directories that earlier releases wrote, and answers as they did. */
import t from "tap";
import { PROGRAM } from "../../../src/base/levels.js";
import { askFrozen } from "../../compat/directory.js";
import { readAbout, releases } from "../../compat/frozen.js";
import { endAll, temporaryDirectory } from "../cluster/server-process.js";

t.setTimeout(120_000);
t.teardown(endAll);

for (const release of releases()) {
  if (readAbout(release).level < PROGRAM.levels.min) continue;
  t.test(`P-131 the directory of ${release}: all of it is there`, async (t) => {
    const directory = temporaryDirectory();
    t.teardown(() => directory.remove());
    const { found, wanted } = await askFrozen(release, directory.path);
    t.strictSame(found, wanted);
  });
}
