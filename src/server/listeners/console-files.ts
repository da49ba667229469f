/**
 * The files of the web console as the build left them beside the program.
 *
 * Invariants: 1. What is served is what the build listed, by its names. 2. Content stays on the
 * disk until somebody asks: of a console that nobody opens only the list is in memory.
 */
import { readFile, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { ConsoleFile, ConsoleFiles } from "../../rest/routes/console-routes.js";

/** Seen from the bundled program, and from this module where it runs by itself. */
const FOLDERS = ["../console/", "../../../console/"];

/** What `scripts/build-console.mjs` writes. */
interface Listing {
  readonly first: string;
  readonly files: readonly ConsoleFile[];
}

const ENDINGS = { br: ".br", gzip: ".gz" } as const;

function listingIn(folder: string): Listing | null {
  try {
    return JSON.parse(readFileSync(`${folder}files.json`, "utf8")) as Listing;
  } catch {
    return null;
  }
}

/** Null when this program was made without. */
export function readConsoleFiles(): ConsoleFiles | null {
  for (const place of FOLDERS) {
    const folder = fileURLToPath(new URL(place, import.meta.url));
    const listing = listingIn(folder);
    if (listing === null) continue;
    const { first, files } = listing;
    return {
      first,
      files: new Map(files.map((file) => [file.name, file])),
      read: ({ name }, encoding, done) => {
        const ending = encoding === null ? "" : ENDINGS[encoding];
        readFile(`${folder}${name}${ending}`, (error, content) => done(error ? null : content));
      },
    };
  }
  return null;
}
