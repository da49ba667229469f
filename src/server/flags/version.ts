/** The version of the program, from the package's own manifest. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

function readVersion(): string {
  let directory = dirname(fileURLToPath(import.meta.url));
  for (;;) {
    try {
      const manifest = JSON.parse(readFileSync(join(directory, "package.json"), "utf8")) as {
        readonly name?: string;
        readonly version?: string;
      };
      if (manifest.name === "svc" && manifest.version !== undefined) return manifest.version;
    } catch {
      // Not here: look one directory up.
    }
    const parent = dirname(directory);
    if (parent === directory) return "unknown";
    directory = parent;
  }
}

export const VERSION = readVersion();
