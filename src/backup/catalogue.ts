/**
 * What lies in a directory of backups: the manifests, what is incomplete or unreadable, what else
 * there is.
 *
 * Reads structure only: names, sizes, manifests; no artifact is opened. Invariants: 1. The root is
 * looked at first: a link, or a directory that others may write, is InsecureRoot. 2. Nothing that
 * cannot be read is left out: it is listed as invalid with its reason; what the system could not
 * list or read at all fails the whole listing (P-141). 3. Entries are by time of creation, then id.
 */
import { failure, ok } from "../base/result.js";
import type { ArchiveEntry, ArchivePort, SignaturePort } from "../ports.js";
import { ChainWalk, type Coverage, coverageOf, linkFault } from "./chain.js";
import { type BackupDone, type BackupFault, artifactFault, systemFault } from "./faults.js";
import { type ReadManifest, decodeManifest, parentAsTold } from "./manifest-reader.js";
import { MANIFEST_MAX_BYTES, type Manifest } from "./manifest.js";
import { type CatalogueName, catalogueName, manifestName } from "./names.js";
import { readFile } from "./steps.js";

/** Directories inside the one of a backup. */
const TREE_DEPTH_MAX = 3;
/** Others than the owner may write. */
const OTHERS_WRITE = 0o022;

export interface CatalogueEntry {
  readonly id: string;
  /** null: there is none, or it is no good. */
  readonly manifest: Manifest | null;
  /** Why it cannot be used; null when, by what was looked at, it can. */
  readonly fault: BackupFault | null;
  /** It was never published. */
  readonly isIncomplete: boolean;
  /** What is under the name of its directory; null: nothing. */
  readonly artifacts: CatalogueRest | null;
  /** Its parent, as far as anybody knows; null: nobody knows. */
  readonly told: { readonly parent: string | null } | null;
  /** Of the manifest; without one, the last change of what is there. Unix milliseconds. */
  readonly createdAtMs: number;
  /** Of all files, the manifest included. */
  readonly sizeBytes: number;
  /** Its signature could not be checked. */
  readonly isUnchecked: boolean;
  /** Of a root with a whole chain. */
  readonly coverage: Coverage | null;
}

/** A thing in the directory. Of the catalogue's rest: neither a manifest nor what is of one. */
export interface CatalogueRest {
  readonly name: string;
  readonly is: CatalogueName;
  readonly isDirectory: boolean;
  readonly sizeBytes: number;
  readonly modifiedMs: number;
}

export interface Catalogue {
  readonly entries: readonly CatalogueEntry[];
  readonly rest: readonly CatalogueRest[];
}

/** Looks at the root: it must be a directory of its owner's alone. */
export function checkRoot(archive: ArchivePort, done: BackupDone<null>): void {
  archive.examine("", (root) => {
    if (!root.ok) return done(systemFault(root));
    const { kind, mode } = root.value;
    if (kind !== "directory") return done(insecure("is a link or no directory"));
    if ((mode & OTHERS_WRITE) !== 0) return done(insecure("can be written by others"));
    done(ok(null));
  });
}

function insecure(what: string): BackupFault {
  return failure("InsecureRoot", `The directory of backups ${what}.`);
}

/** Reads one manifest. A missing one is `missing`. */
function readManifest(
  archive: ArchivePort,
  id: string,
  signatures: SignaturePort,
  missing: () => BackupFault,
  done: BackupDone<ReadManifest>,
): void {
  const path = manifestName(id);
  readFile(archive, path, MANIFEST_MAX_BYTES, (bytes) => {
    if (bytes.ok) return done(decodeManifest(path, id, bytes.value, signatures));
    done(bytes.code === "missing" ? missing() : artifactFault(bytes));
  });
}

/**
 * What a published backup goes on from, as it says; null: from nothing, or it is there no more. A
 * manifest of which nobody can read that is CorruptArtifact.
 */
export function readParentAsTold(
  archive: ArchivePort,
  id: string,
  done: BackupDone<string | null>,
): void {
  const path = manifestName(id);
  readFile(archive, path, MANIFEST_MAX_BYTES, (bytes) => {
    if (!bytes.ok) return done(bytes.code === "missing" ? ok(null) : artifactFault(bytes));
    const told = parentAsTold(bytes.value);
    done(told === null ? failure("CorruptArtifact", `"${path}" is no manifest`) : ok(told.parent));
  });
}

/** The manifests from the root to `leafId`, when they are a chain. */
export function readChain(
  archive: ArchivePort,
  signatures: SignaturePort,
  leafId: string,
  done: BackupDone<{ readonly chain: readonly Manifest[]; readonly isUnchecked: boolean }>,
): void {
  const walk = new ChainWalk(leafId);
  let isUnchecked = false;
  const next = (): void => {
    const { wanted } = walk;
    if (wanted === null) {
      const chain = walk.chain();
      return done(chain.ok ? ok({ chain: chain.value, isUnchecked }) : chain);
    }
    const missing = (): BackupFault => walk.missing();
    readManifest(archive, wanted, signatures, missing, (read) => {
      if (!read.ok) return done(read);
      isUnchecked ||= read.value.isUnchecked;
      const fault = walk.take(read.value.manifest);
      if (fault !== null) return done(fault);
      next();
    });
  };
  checkRoot(archive, (root) => (root.ok ? next() : done(root)));
}

export interface Tree {
  /** By path below the tree's top: everything that is no directory. */
  readonly files: ReadonlyMap<string, ArchiveEntry>;
  readonly sizeBytes: number;
  /** Of the youngest thing in it. */
  readonly modifiedMs: number;
}

/**
 * Everything in a directory, or the file itself; links are told, never followed. A directory that
 * is published or removed meanwhile is empty: whoever looks again finds it where it went.
 */
export function scanTree(
  archive: ArchivePort,
  path: string,
  entry: ArchiveEntry,
  done: BackupDone<Tree>,
): void {
  const files = new Map<string, ArchiveEntry>();
  let modifiedMs = entry.modifiedMs;
  let sizeBytes = entry.sizeBytes;
  const waiting: string[] = entry.kind === "directory" ? [""] : [];
  const next = (): void => {
    const folder = waiting.pop();
    if (folder === undefined) return done(ok({ files, sizeBytes, modifiedMs }));
    archive.list(`${path}${folder}`, (listed) => {
      if (!listed.ok && listed.code !== "missing") return done(systemFault(listed));
      for (const found of listed.ok ? listed.value : []) {
        const name = `${folder}/${found.name}`;
        modifiedMs = Math.max(modifiedMs, found.modifiedMs);
        sizeBytes += found.sizeBytes;
        const isDeep = name.split("/").length > TREE_DEPTH_MAX + 1;
        if (found.kind === "directory" && !isDeep) waiting.push(name);
        else files.set(name.slice(1), found);
      }
      next();
    });
  };
  next();
}

/** What is wrong with the files of a backup by their names and sizes alone. */
export function structureFault(manifest: Manifest, tree: Tree): BackupFault | null {
  const corrupt = (name: string, what: string): BackupFault =>
    failure("CorruptArtifact", `"${manifest.backupId}/${name}" ${what}`);
  for (const [name, { sizeBytes }] of manifest.files) {
    const found = tree.files.get(name);
    if (found === undefined) return corrupt(name, "is missing");
    if (found.kind !== "file") return corrupt(name, "is no file");
    if (found.sizeBytes !== sizeBytes) {
      return corrupt(name, `has ${found.sizeBytes} bytes and should have ${sizeBytes}`);
    }
  }
  for (const name of tree.files.keys()) {
    if (!manifest.files.has(name)) return corrupt(name, "does not belong to the backup");
  }
  return null;
}

/** What is under one id. */
interface Found {
  manifest: ArchiveEntry | null;
  artifacts: ArchiveEntry | null;
  /** A directory on its way in. */
  staging: ArchiveEntry | null;
}

/** What has a manifest. */
interface Named {
  readonly id: string;
  readonly file: ArchiveEntry;
  readonly artifacts: CatalogueRest | null;
}

/** Reads the whole catalogue. */
export function readCatalogue(
  archive: ArchivePort,
  signatures: SignaturePort,
  done: BackupDone<Catalogue>,
): void {
  checkRoot(archive, (root) => {
    if (!root.ok) return done(root);
    archive.list("", (listed) => {
      if (!listed.ok) return done(systemFault(listed));
      new Listing(archive, signatures, listed.value).run(done);
    });
  });
}

class Listing {
  private readonly byId = new Map<string, Found>();
  private readonly others: ArchiveEntry[] = [];
  private readonly entries: CatalogueEntry[] = [];
  private readonly rest: CatalogueRest[] = [];

  constructor(
    private readonly archive: ArchivePort,
    private readonly signatures: SignaturePort,
    listed: readonly ArchiveEntry[],
  ) {
    for (const entry of listed) this.sort(entry);
  }

  private sort(entry: ArchiveEntry): void {
    const is = catalogueName(entry.name);
    const id = "id" in is ? is.id : null;
    if (is.kind !== "manifest" && is.kind !== "artifacts") this.others.push(entry);
    if (id === null) return;
    const found = this.byId.get(id) ?? { manifest: null, artifacts: null, staging: null };
    if (is.kind === "manifest") found.manifest = entry;
    else if (is.kind === "artifacts") found.artifacts = entry;
    else if (entry.kind === "directory") found.staging = entry;
    else return;
    this.byId.set(id, found);
  }

  run(done: BackupDone<Catalogue>): void {
    const ids = [...this.byId];
    const nextRest = (): void => {
      const entry = this.others.pop();
      if (entry === undefined) return done(ok(this.result()));
      scanTree(this.archive, entry.name, entry, (tree) => {
        if (!tree.ok) return done(tree);
        this.rest.push(thing(entry, tree.value));
        nextRest();
      });
    };
    const next = (): void => {
      const [id, found] = ids.pop() ?? [];
      if (id === undefined || found === undefined) return nextRest();
      this.examine(id, found, (result) => {
        if (!result.ok) return done(result);
        this.entries.push(result.value);
        next();
      });
    };
    next();
  }

  /** Reads what is under an id. */
  private examine(id: string, found: Found, done: BackupDone<CatalogueEntry>): void {
    const directory = found.artifacts ?? found.staging;
    const judge = (tree: Tree | null): void => {
      const { artifacts: entry } = found;
      const artifacts = entry === null || tree === null ? null : thing(entry, tree);
      if (found.manifest === null) return done(ok({ ...incomplete(id, tree), artifacts }));
      this.judge({ id, file: found.manifest, artifacts }, artifacts === null ? null : tree, done);
    };
    if (directory === null) return judge(null);
    scanTree(this.archive, directory.name, directory, (tree) => {
      if (!tree.ok) return done(tree);
      judge(tree.value);
    });
  }

  private judge(
    { id, file, artifacts }: Named,
    tree: Tree | null,
    done: BackupDone<CatalogueEntry>,
  ): void {
    const path = manifestName(id);
    const sizeBytes = file.sizeBytes + (tree?.sizeBytes ?? 0);
    const bare = { id, isIncomplete: false, sizeBytes, coverage: null, artifacts };
    readFile(this.archive, path, MANIFEST_MAX_BYTES, (bytes) => {
      if (!bytes.ok) {
        const fault = artifactFault(bytes);
        if (fault.code === "IoError") return done(fault);
        const { modifiedMs: createdAtMs } = file;
        const unknown = { manifest: null, told: null, isUnchecked: false };
        return done(ok({ ...bare, ...unknown, fault, createdAtMs }));
      }
      const read = decodeManifest(path, id, bytes.value, this.signatures);
      if (!read.ok) {
        const told = parentAsTold(bytes.value);
        const { modifiedMs: createdAtMs } = file;
        const unread = { manifest: null, isUnchecked: false, createdAtMs };
        return done(ok({ ...bare, ...unread, fault: read, told }));
      }
      const { manifest, isUnchecked } = read.value;
      const { createdAtMs, parentBackupId: parent } = manifest;
      const fault = tree === null ? withoutArtifacts(id) : structureFault(manifest, tree);
      done(ok({ ...bare, manifest, fault, told: { parent }, createdAtMs, isUnchecked }));
    });
  }

  private result(): Catalogue {
    const { entries, rest } = this;
    entries.sort((a, b) => a.createdAtMs - b.createdAtMs || (a.id < b.id ? -1 : 1));
    rest.sort((a, b) => (a.name < b.name ? -1 : 1));
    return { entries: withCoverage(entries), rest };
  }
}

function thing({ name, kind }: ArchiveEntry, { sizeBytes, modifiedMs }: Tree): CatalogueRest {
  const isDirectory = kind === "directory";
  return { name, is: catalogueName(name), isDirectory, sizeBytes, modifiedMs };
}

function withoutArtifacts(id: string): BackupFault {
  return failure("CorruptArtifact", `"${id}" is missing`);
}

function incomplete(id: string, tree: Tree | null): Omit<CatalogueEntry, "artifacts"> {
  const fault = failure("CorruptArtifact", "The backup was never published.");
  const rest = { manifest: null, isIncomplete: true, told: null, isUnchecked: false } as const;
  const { sizeBytes = 0, modifiedMs: createdAtMs = 0 } = tree ?? {};
  return { id, ...rest, fault, createdAtMs, sizeBytes, coverage: null };
}

/** Tells of each root how far its chains reach, over backups that can be used alone. */
function withCoverage(entries: readonly CatalogueEntry[]): CatalogueEntry[] {
  const children = new Map<string, Manifest[]>();
  for (const { manifest, fault } of entries) {
    const parent = manifest?.parentBackupId ?? null;
    if (manifest === null || parent === null || fault !== null) continue;
    children.set(parent, [...(children.get(parent) ?? []), manifest]);
  }
  return entries.map((entry) => {
    const { manifest: root, fault } = entry;
    if (root === null || fault !== null || root.type !== "Full") return entry;
    const { minMs } = coverageOf(root, root);
    let { maxMs } = coverageOf(root, root);
    const reached = [root];
    const seen = new Set([root.backupId]);
    for (const parent of reached) {
      for (const child of children.get(parent.backupId) ?? []) {
        if (seen.has(child.backupId) || linkFault(parent, child) !== null) continue;
        seen.add(child.backupId);
        reached.push(child);
        maxMs = Math.max(maxMs, coverageOf(root, child).maxMs);
      }
    }
    return { ...entry, coverage: { minMs, maxMs } };
  });
}
