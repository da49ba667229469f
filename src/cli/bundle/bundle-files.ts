/**
 * What stands in a debug bundle: which file has what of a node, and the manifest.
 *
 * Pure. Invariants: 1. What a node told is written as it is, in files that other programs read: its
 * metrics as a scrape, its log as lines, its profile as the tools of V8 take it. 2. Of key ranges
 * only numbers are written: their ends are keys, and key spaces are names of stored data. 3. The
 * manifest names every node that is missing, and what is missing of the others, with the reason.
 */
import { VERSION } from "../../base/generated/version.js";
import type { NodeDebug, RangeMap } from "../../client/mod.js";
import { jsonText, type JsonValue } from "../terminal/format.js";
import type { ArchivedFile } from "./ustar.js";

const ROOT = "svc-debug";
const FORMAT = 1;
/** Members of a node debug that have files of their own. */
const APART: ReadonlySet<string> = new Set(["metrics", "logs", "profile"]);

/** One node of the bundle, asked or not. */
export interface BundledNode {
  /** Where its clients go; of a node that nobody knows an endpoint of, where its peers go. */
  readonly endpoint: string | null;
  readonly nodeId: number | null;
  /** null = it is missing, for this reason. */
  readonly debug: NodeDebug | null;
  readonly reason: string | null;
}

function file(name: string, text: string): ArchivedFile {
  return { name: `${ROOT}/${name}`, bytes: Buffer.from(text, "utf8") };
}

function jsonFile(name: string, value: unknown): ArchivedFile {
  return file(name, `${jsonText(value as JsonValue)}\n`);
}

function textsOf(value: unknown): readonly string[] {
  if (!Array.isArray(value)) return [];
  return value.filter((text): text is string => typeof text === "string");
}

/** The folder of the `at`th node. */
function folderOf({ nodeId }: BundledNode, at: number): string {
  return nodeId === null ? `unknown-${at + 1}` : `node-${nodeId}`;
}

/** The files of a node that answered. */
export function nodeFiles(node: BundledNode, at: number): ArchivedFile[] {
  const { debug } = node;
  if (debug === null) return [];
  const folder = folderOf(node, at);
  const rest = Object.entries(debug).filter(([name]) => !APART.has(name));
  const files = [jsonFile(`${folder}/node.json`, Object.fromEntries(rest))];
  for (const [index, text] of textsOf(debug["metrics"]).entries()) {
    files.push(file(`${folder}/metrics-${index + 1}.txt`, text));
  }
  const lines = textsOf(debug["logs"]);
  files.push(file(`${folder}/log.jsonl`, lines.map((line) => `${line.trimEnd()}\n`).join("")));
  const profile = debug["profile"] ?? null;
  if (profile !== null) files.push(jsonFile(`${folder}/profile.cpuprofile`, profile));
  return files;
}

/** Which partitions have ranges, and how many; what they are called and where they end is data. */
function rangeFacts({ initialized, localEndpoint, keySpaces }: RangeMap): JsonValue {
  return {
    initialized,
    localEndpoint,
    keySpaces: keySpaces.map(({ routingMode, descriptors }) => ({
      routingMode,
      ranges: descriptors.map(({ partitionId, generation }) => ({ partitionId, generation })),
    })),
  };
}

/** What is told of the cluster as a whole. */
export interface ClusterView {
  /** The document of --cluster-status. */
  readonly status: JsonValue;
  readonly ranges: RangeMap | null;
}

export function clusterFiles({ status, ranges }: ClusterView): ArchivedFile[] {
  const files = [jsonFile("cluster/status.json", status)];
  if (ranges !== null) files.push(jsonFile("cluster/ranges.json", rangeFacts(ranges)));
  return files;
}

/** `made`: when it was begun (RFC 3339). */
export function manifestFile(
  nodes: readonly BundledNode[],
  made: string,
  profileSeconds: number,
): ArchivedFile {
  const listed = nodes.map((node, at) => {
    const { endpoint, nodeId, debug, reason } = node;
    const folder = debug === null ? null : folderOf(node, at);
    const told = { version: debug?.["version"] ?? null, missing: debug?.["missing"] ?? null };
    return { endpoint, nodeId, ok: debug !== null, reason, folder, ...told };
  });
  const about = { format: FORMAT, made, madeBy: `svc-cli ${VERSION}`, profileSeconds };
  return jsonFile("manifest.json", { ...about, nodes: listed });
}
