/**
 * The bytes of a release as they lie in this folder: one file for each part, three lines for each
 * value (its name, what it says, its bytes), and a data directory.
 *
 * Invariant: what a release wrote is frozen once, and never written again.
 */
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PROGRAM } from "../../src/base/levels.js";
import { root } from "../tidy/sources.js";
import { FORMATS } from "./formats/all.js";

const FOLDER = join(root, "test", "compat");

/** One value as a release wrote it. */
export interface Frozen {
  readonly name: string;
  readonly version: number;
  readonly text: string;
  readonly bytes: Uint8Array;
}

/** What a release supported, the newest level and protocol. */
export interface About {
  readonly level: number;
  readonly protocol: number;
}

/** `0.1.3` and `0.1.0` are one release: patches change no format. */
export function releaseOf(version: string): string {
  return version.split(".").slice(0, 2).join(".");
}

/** The releases that are frozen. */
export function releases(): readonly string[] {
  return readdirSync(FOLDER)
    .filter((name) => /^\d+\.\d+$/.test(name))
    .sort((one, other) => one.localeCompare(other, "en", { numeric: true }));
}

export function folderOf(release: string): string {
  return join(FOLDER, release);
}

export function readAbout(release: string): About {
  return JSON.parse(readFileSync(join(folderOf(release), "about.json"), "utf8")) as About;
}

/** The values of one part. */
export function readPart(release: string, part: string): readonly Frozen[] {
  const text = readFileSync(join(folderOf(release), `${part}.txt`), "utf8");
  return text
    .split("\n\n")
    .filter((block) => block !== "")
    .map((block) => {
      const [head = "", said = "", hex = ""] = block.trimEnd().split("\n");
      const [, name = "", version = ""] = /^(.*) (\d+)$/.exec(head) ?? [];
      return {
        name,
        version: Number(version),
        text: said,
        bytes: Uint8Array.from(Buffer.from(hex, "hex")),
      };
    });
}

/** Everything that the program writes at its level. Nothing may be there yet. */
export function freezeFormats(release: string): void {
  const folder = folderOf(release);
  if (existsSync(folder)) throw new Error(`${folder} exists: what a release wrote never changes`);
  mkdirSync(folder);
  for (const [part, formats] of Object.entries(FORMATS)) {
    const blocks = Object.entries(formats).flatMap(([name, { version, samples }]) => {
      return samples().map((sample) => {
        const hex = Buffer.from(sample.write()).toString("hex");
        return `${name} ${version}\n${sample.text}\n${hex}\n`;
      });
    });
    writeFileSync(join(folder, `${part}.txt`), blocks.join("\n"));
  }
  const about: About = { level: PROGRAM.levels.max, protocol: PROGRAM.protocols.max };
  writeFileSync(join(folder, "about.json"), `${JSON.stringify(about, null, 2)}\n`);
}
