/** Reads the repository's files once for the tidy tests. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

function findRoot(): string {
  let directory = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(directory, "package.json"))) directory = dirname(directory);
  return directory;
}

export const root = findRoot();

/** Paths of all files that git tracks or would track, relative to the root. */
export function trackedFiles(): string[] {
  const output = execFileSync(
    "git",
    ["-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
    { encoding: "utf8", maxBuffer: 1 << 26 },
  );
  return output.split("\0").filter((path) => path !== "" && existsSync(join(root, path)));
}

/** The generated sources, which git does not track. */
export function builtFiles(): string[] {
  return ["base", "proto", "wasm"].flatMap((room) => {
    const folder = `src/${room}/generated`;
    return readdirSync(join(root, folder)).map((name) => `${folder}/${name}`);
  });
}

export function readText(path: string): string {
  return readFileSync(join(root, path), "utf8");
}

export interface Import {
  readonly from: string;
  readonly line: number;
}

/** Module specifiers imported or re-exported by a TypeScript text. */
export function importsOf(text: string): Import[] {
  const found: Import[] = [];
  const pattern =
    /(?:^|\n)\s*(?:import|export)\b[^;]*?\bfrom\s+"([^"]+)"|(?:^|\n)\s*import\s+"([^"]+)"|\bimport\("([^"]+)"\)/g;
  for (const match of text.matchAll(pattern)) {
    const from = match[1] ?? match[2] ?? match[3];
    if (from === undefined) continue;
    found.push({ from, line: text.slice(0, match.index).split("\n").length });
  }
  return found;
}

/** The path of a relative import of `path`, as a .ts path from the root. */
export function resolveImport(path: string, from: string): string {
  return normalize(join(dirname(path), from)).replace(/\.js$/, ".ts");
}

/** `text` with comments and string contents blanked, line structure kept. */
export function codeOnly(text: string): string {
  const pattern =
    /\/\*[\s\S]*?\*\/|\/\/[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\[\s\S]|\$\{[^}]*\}|[^`\\])*`/g;
  return text.replace(pattern, (found) => {
    if (found.startsWith("`")) {
      const kept = [...found.matchAll(/\$\{[^}]*\}/g)].map((part) => part[0]).join(" ");
      return `""${kept}${found.replace(/[^\n]/g, "")}`;
    }
    return found.startsWith("/") ? found.replace(/[^\n]/g, " ") : '""';
  });
}
