/**
 * What was published in the directory of backups, read right then, and who could reach it later.
 *
 * Invariants: 1. A manifest counts from the moment at which it has its name. 2. What was turned on
 * purpose is known as spoilt, with everything that goes on from it.
 */
import type { Manifest } from "../../../src/backup/manifest.js";
import { artifactNames } from "../../../src/backup/manifest.js";
import { asideOf, catalogueName, manifestName } from "../../../src/backup/names.js";
import type { SeenManifest } from "../../judge/checkers/backups/gc-safe.js";
import type { BackupChecks } from "./backup-checks.js";
import { ChainReader, type ReadLog } from "./chain-reader.js";
import type { KnownCluster } from "./known-clusters.js";
import type { GroupRows } from "./shadow.js";
import type { SharedDirectory } from "./shared-directory.js";

export interface Published {
  readonly id: string;
  readonly cluster: KnownCluster;
  readonly manifest: Manifest;
  readonly askedMs: number;
  readonly atMs: number;
  /** Root first, itself last. */
  readonly chain: readonly string[];
  readonly logs: ReadonlyMap<number, ReadLog>;
  readonly images: ReadonlyMap<number, { readonly index: number; readonly rows: GroupRows }>;
}

export class Catalogued {
  readonly published = new Map<string, Published>();
  /** Ids of which a byte was turned, and of what goes on from them. */
  readonly spoilt = new Set<string>();
  /** Ids of which somebody was told that they are published. */
  readonly acknowledged = new Set<string>();
  /** Those whose manifest has its name now, oldest first. */
  private there: string[] = [];

  constructor(
    private readonly directory: SharedDirectory,
    readonly reader: ChainReader,
    private readonly checks: BackupChecks,
  ) {}

  /** Ids whose manifest lies there now, in the order in which they were published. */
  get ids(): readonly string[] {
    return this.there;
  }

  /** Something in the root was renamed or removed. Calls `made` for each new backup. */
  look(made: (id: string) => void): void {
    const now: string[] = [];
    for (const name of this.directory.root.names.keys()) {
      const is = catalogueName(name);
      if (is.kind === "manifest") now.push(is.id);
    }
    const gone = this.there.filter((id) => !now.includes(id));
    const newest = this.newest();
    for (const id of gone) if (this.isCollected(id)) this.checks.collection.removed(id, newest);
    const fresh = now.filter((id) => !this.there.includes(id));
    this.there = [...this.there.filter((id) => now.includes(id)), ...fresh];
    for (const id of fresh) {
      if (this.published.has(id)) continue;
      made(id);
    }
    if (gone.length > 0 || fresh.length > 0) this.lookAtFiles();
  }

  /** The power of a machine went: what it had renamed and not made durable may be as before. */
  afterCrash(made: (id: string) => void): void {
    const isThere = (id: string): boolean => this.directory.find(manifestName(id)) !== undefined;
    for (const id of this.there) {
      if (isThere(id) || !this.acknowledged.has(id)) continue;
      this.checks.whole.looked("crashed", id, "its manifest is gone");
    }
    this.there = this.there.filter(isThere);
    this.look(made);
    this.verifyAll("crashed");
  }

  /** It was put aside; a keeper that could not make it durable takes its own away at once. */
  private isCollected(id: string): boolean {
    return this.aside().has(id);
  }

  /** Ids of which a pass holds the manifest back. */
  private aside(): ReadonlySet<string> {
    const ids = new Set<string>();
    for (const name of this.directory.root.names.keys()) {
      const id = asideOf(name);
      if (id !== null && this.directory.find(id) !== undefined) ids.add(id);
    }
    return ids;
  }

  /** The newest by its own time, of those that are there. */
  private newest(): string | null {
    let newest: Published | null = null;
    for (const id of this.there) {
      const one = this.published.get(id);
      if (one === undefined) return null;
      const { createdAtMs } = one.manifest;
      const most = newest?.manifest.createdAtMs ?? -1;
      const isNewer = createdAtMs > most || (createdAtMs === most && id > (newest?.id ?? ""));
      if (isNewer) newest = one;
    }
    return newest?.id ?? null;
  }

  private lookAtFiles(): void {
    const seen: SeenManifest[] = [];
    for (const id of this.there) {
      const one = this.published.get(id);
      if (one === undefined) continue;
      const { parentBackupId: parent, createdAtMs: createdMs } = one.manifest;
      const missing = artifactNames(one.manifest).filter((name) => {
        return this.directory.find(`${id}/${name}`) === undefined;
      });
      seen.push({ id, parent, createdMs, filesMissing: missing });
    }
    this.checks.collection.looked(seen, this.aside(), this.spoilt);
  }

  /**
   * Reads a backup that was just published; null: it is not whole, and that was told. `of`: whose it is,
   * by the cluster that its logs name and the endpoint of its keeper.
   */
  take(
    id: string,
    of: (lineage: string, keeper: string) => Pick<Published, "cluster" | "askedMs" | "atMs">,
  ): Published | null {
    const verified = this.reader.validate(id);
    if (!verified.ok) {
      const parent = this.parentOf(id);
      if (parent !== null && this.spoilt.has(parent)) {
        this.spoilt.add(id);
        return null;
      }
      this.checks.whole.looked("published", id, `${verified.code}: ${verified.message}`);
      return null;
    }
    this.checks.whole.looked("published", id, null);
    const { chain } = verified.value;
    const manifest = chain.at(-1) as Manifest;
    const logs = new Map<number, ReadLog>();
    const images = new Map<number, { index: number; rows: GroupRows }>();
    for (const { partition } of manifest.partitionRanges) {
      const log = this.reader.log(id, partition);
      if (log !== null) logs.set(partition, log);
      const image = manifest.type === "Full" ? this.reader.image(id, partition) : null;
      if (image !== null) images.set(partition, image);
    }
    const ids = chain.map(({ backupId }) => backupId);
    const lineage = logs.get(0)?.summary.head.origin.lineage ?? "";
    const whose = of(lineage, manifest.coordinatorNode);
    const published = { id, ...whose, manifest, chain: ids, logs, images };
    this.published.set(id, published);
    return published;
  }

  private parentOf(id: string): string | null {
    const bytes = this.directory.find(manifestName(id))?.bytes;
    const text = bytes === undefined ? "" : Buffer.from(bytes).toString("utf8");
    const [, parent = null] = /"ParentBackupId":"([0-9a-f-]+)"/.exec(text) ?? [];
    return parent === null ? null : parent.replaceAll("-", "");
  }

  /** A byte of a backup was turned. */
  spoil(id: string): void {
    for (const [other, { chain }] of this.published) {
      if (other === id || chain.includes(id)) this.spoilt.add(other);
    }
    this.spoilt.add(id);
  }

  /** Everything that is there verifies, unless it was spoilt. */
  verifyAll(when: "crashed" | "at the end"): void {
    for (const id of this.there) {
      const verified = this.reader.validate(id);
      const fault = verified.ok ? null : `${verified.code}: ${verified.message}`;
      if (this.spoilt.has(id)) {
        if (when === "at the end") this.checks.whole.spoilt(id, fault !== null);
      } else this.checks.whole.looked(when, id, fault);
    }
  }

  /** The parts of a chain that a partition has, root first. */
  chainOf({ chain }: Published): Published[] {
    return chain.flatMap((id) => this.published.get(id) ?? []);
  }
}
