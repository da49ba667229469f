/** The manifests of scripts/deploy/kubernetes, as a cluster would get them. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { readText, root } from "../../tidy/sources.js";
import { type Yaml, type YamlMap, readYaml } from "./yaml.js";

const FOLDER = "scripts/deploy/kubernetes";

/** The base needs nobody to be rendered: its objects are the documents of its files. */
export function baseTexts(): readonly string[] {
  const [kustomization] = readYaml(readText(`${FOLDER}/base/kustomization.yaml`));
  const { resources, ...rest } = kustomization as YamlMap;
  const others = Object.keys(rest).filter((key) => key !== "apiVersion" && key !== "kind");
  if (others.length > 0) throw new Error(`the base does more than to list files: ${others.join()}`);
  return (resources as readonly string[]).map((name) => readText(`${FOLDER}/base/${name}`));
}

export function baseObjects(): readonly Yaml[] {
  return baseTexts().flatMap((text) => readYaml(text));
}

/** The objects of a folder as kustomize renders it; null: it is not installed. */
export function rendered(folder: string): string | null {
  const path = join(root, FOLDER, folder);
  const { error, status, stdout, stderr } = spawnSync("kubectl", ["kustomize", path], {
    encoding: "utf8",
  });
  if (error !== undefined) return null;
  if (status !== 0) throw new Error(`kubectl kustomize ${folder}: ${stderr}`);
  return stdout;
}

export function objectOf(objects: readonly Yaml[], kind: string, name: string): YamlMap {
  const found = (objects as readonly YamlMap[]).find(
    (each) => each["kind"] === kind && (each["metadata"] as YamlMap)["name"] === name,
  );
  if (found === undefined) throw new Error(`there is no ${kind} ${name}`);
  return found;
}

/** A member some levels down. */
export function at(value: Yaml, ...path: readonly (string | number)[]): Yaml {
  let here: Yaml = value;
  for (const step of path) {
    const next: Yaml | undefined = (here as Readonly<Record<string, Yaml>>)[String(step)];
    if (next === undefined) throw new Error(`there is no ${path.join(".")}`);
    here = next;
  }
  return here;
}
