/**
 * The sub-rooms of src/: which lies above which, and how many files a folder holds.
 *
 * Invariants: 1. What lies directly in a folder is its top floor: it may import every room of the folder and none
 * imports it, but for files that are listed as floors of their own. 2. Rooms on one floor do not see each other. 3. An
 * import of a type alone is an arrow like any other: who reads the one has to read the other.
 */
import { importsOf, resolveImport } from "./sources.js";

/** Files of one folder beside its sub-folders: more is a wall of names. */
export const FOLDER_FILES_MAX = 20;

/** The rooms of each folder of src/ that has some: floors from the ground up. */
export const ROOMS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  raft: [["state"], ["roles"]],
  machine: [
    ["commands", "store"],
    ["ownership"],
    ["decision"],
    ["locks", "sequences", "kv", "meta"],
    ["ranges"],
    ["snapshot", "restoring"],
  ],
  host: [
    ["replication", "pauses"],
    ["snapshots"],
    ["settings.ts", "requests"],
    ["storage"],
    ["group", "reports", "restoring"],
    ["sequences", "waiting", "leaders", "cluster"],
    ["ranges", "backups", "watching"],
    ["keeping", "joint-watching"],
  ],
  operations: [
    ["api"],
    ["admission", "wire"],
    ["forwarding"],
    ["serving"],
    ["kv", "locking", "backups"],
    ["cluster"],
  ],
  disk: [["log", "store"]],
  grpc: [["h2"], ["calls"], ["batch", "services"]],
  rest: [["json"], ["http"], ["routes"]],
  server: [["flags", "metrics"], ["security", "tracing"], ["listeners", "restoring"], ["forcing"]],
  client: [
    ["values"],
    ["time"],
    ["call"],
    ["transport", "metadata", "sequences"],
    ["watching"],
    ["locks", "kv", "admin"],
    ["elections"],
  ],
  cli: [
    ["terminal", "commands"],
    ["invocation"],
    ["arguments", "lock-run", "bench", "status"],
    ["bundle", "check"],
    ["run"],
    ["shell"],
  ],
  console: [["parts"], ["pages"]],
};

/** The room of a path below src/`folder`: a sub-folder, a file that is a floor of its own, or "" for the top. */
function roomIn(folder: string, path: string): string | null {
  const parts = path.split("/");
  if (parts[0] !== "src" || parts[1] !== folder || parts.length < 3) return null;
  const first = parts[2] as string;
  if (parts.length > 3) return first;
  return (ROOMS[folder] ?? []).some((floor) => floor.includes(first)) ? first : "";
}

function floorOf(folder: string, room: string): number {
  const floors = ROOMS[folder] ?? [];
  if (room === "") return floors.length;
  return floors.findIndex((floor) => floor.includes(room));
}

/** Imports of `path` that do not point down among the rooms of its folder. */
export function checkRooms(path: string, text: string): string[] {
  const folder = path.split("/")[1] ?? "";
  const room = roomIn(folder, path);
  if (room === null || ROOMS[folder] === undefined) return [];
  const floor = floorOf(folder, room);
  if (floor < 0) return [`${path}: src/${folder}/${room} has no floor; add it to ROOMS`];
  const findings: string[] = [];
  for (const { from, line } of importsOf(text)) {
    if (!from.startsWith(".")) continue;
    const target = roomIn(folder, resolveImport(path, from));
    if (target === null || target === room) continue;
    if (floorOf(folder, target) >= floor) {
      const here = room === "" ? "" : `/${room}`;
      const there = target === "" ? "the top of the folder" : target;
      findings.push(`${path}:${line}: src/${folder}${here} may not import ${there}`);
    }
  }
  return findings;
}

/** Folders of src/ and test/ with too many files. */
export function checkFolders(paths: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const path of paths) {
    if (!/^(?:src|test)\//.test(path)) continue;
    const folder = path.slice(0, path.lastIndexOf("/"));
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  return [...counts]
    .filter(([, count]) => count > FOLDER_FILES_MAX)
    .map(([folder, count]) => `${folder}: ${count} files, at most ${FOLDER_FILES_MAX}`);
}
