/**
 * What documents say of the repository: every relative link leads somewhere, every path in code
 * marks is there, and the map names every room.
 */
import { dirname, normalize } from "node:path";

const LINK = /\]\(([^)\s#]+)(?:#[^)]*)?\)/g;
/**
 * Two names at least, from the top or from where the document lies: a single one may be short for
 * anything.
 */
const SOURCE_PATH = /`((?:[\w-]+\/)+(?:[\w-]+\/|[\w.-]+\.(?:ts|md|mjs|proto)))`/g;

/**
 * Links and paths of a document that lead nowhere; `exists` tells a file or folder of the
 * repository.
 */
export function checkDocument(
  path: string,
  text: string,
  exists: (path: string) => boolean,
): string[] {
  const findings: string[] = [];
  const isThere = (place: string): boolean => exists(normalize(place).replace(/\/$/, ""));
  for (const [, target = ""] of text.matchAll(LINK)) {
    if (/^[a-z]+:/.test(target) || isThere(`${dirname(path)}/${target}`)) continue;
    findings.push(`${path}: the link ${target} leads nowhere`);
  }
  for (const [, target = ""] of text.matchAll(SOURCE_PATH)) {
    if (target.startsWith("dist/") || isThere(target)) continue;
    if (!isThere(`${dirname(path)}/${target}`)) findings.push(`${path}: ${target} is not there`);
  }
  // A row of the map names the files of its folder without the folder.
  for (const [row = "", folder = ""] of text.matchAll(/^\| `([\w-]+\/)` \|.*$/gm)) {
    for (const [, file = ""] of row.matchAll(/`([\w-]+\.ts)`/g)) {
      const around = [`${dirname(path)}/${folder}${file}`, `${dirname(path)}/${file}`];
      if (!around.some(isThere)) findings.push(`${path}: ${folder}${file} is not there`);
    }
  }
  return findings;
}

/** Rooms that the map of src/ does not name in the row of their folder. */
export function checkMap(
  map: string,
  rooms: Readonly<Record<string, readonly (readonly string[])[]>>,
): string[] {
  const findings: string[] = [];
  for (const [folder, floors] of Object.entries(rooms)) {
    const row = map.split("\n").find((line) => line.startsWith(`| \`${folder}/\` |`)) ?? "";
    for (const room of floors.flat()) {
      const name = room.endsWith(".ts") ? room : `${room}/`;
      if (!row.includes(`\`${name}\``))
        findings.push(`src/README.md: ${folder}/${name} has no place`);
    }
  }
  return findings;
}

/**
 * House words that the glossary says are still in the code, and are not, and types that it names
 * and nothing declares; `source` is all of it, paths included.
 */
export function checkGlossary(glossary: string, source: string): string[] {
  const plain = (text: string): string => text.replace(/[\s…*/-]+/g, "").toLowerCase();
  const haystack = plain(source);
  const findings: string[] = [];
  for (const [, group = ""] of glossary.matchAll(/\(in code: ([^)]*)\)/g)) {
    for (const [, italic, code] of group.matchAll(/\*([^*]+)\*|`([^`]+)`/g)) {
      const word = italic ?? code ?? "";
      if (haystack.includes(plain(word))) continue;
      findings.push(`docs/glossary.md: no code says "${word}" any more; the term alone is enough`);
    }
  }
  const outside = glossary.replace(/\(in code: [^)]*\)/g, "");
  for (const [, name = ""] of outside.matchAll(/`([A-Z][a-z]+[A-Za-z]*)`/g)) {
    if (new RegExp(`\\b(class|interface|type) ${name}\\b`).test(source)) continue;
    findings.push(`docs/glossary.md: nothing in src/ is declared as ${name}`);
  }
  return findings;
}
