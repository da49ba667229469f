/**
 * Names in a directory of backups.
 *
 * Pure. Invariants: 1. A backup has the id of 32 lower-case hexadecimal digits; `uuidOf` is how
 * the world writes it. 2. What no rule here knows is nobody's and is left alone.
 */
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const LEASE = /^\.lease_([0-9a-z_]{1,40})$/;
const CLAIM = /^restore_([1-9]\d{0,8})\.claim$/;
const LEFTOVER = /\.(?:tmp|staging|quarantine|merge)_/;
const ASIDE = /^([0-9a-f]{32})\.manifest\.quarantine_[0-9a-f]{8}$/;
const STAGING = /.\.staging_[0-9a-f]{8}$/;
const LEADING_ID = /^([0-9a-f]{32})(?:\.|$)/;

export const IMAGE_FOLDER = "checkpoint";
export const LOG_FOLDER = "log";

/** The id in the form of the contract. */
export function uuidOf(id: string): string {
  const parts = [id.slice(0, 8), id.slice(8, 12), id.slice(12, 16), id.slice(16, 20), id.slice(20)];
  return parts.join("-");
}

/** The id of a UUID in any case of its digits; null when it is none. */
export function idOfUuid(uuid: string): string | null {
  const lower = uuid.toLowerCase();
  return UUID.test(lower) ? lower.replaceAll("-", "") : null;
}

export function manifestName(id: string): string {
  return `${id}.manifest`;
}

/** `operation`: up to 40 of 0-9, a-z and "_". */
export function leaseName(operation: string): string {
  return `.lease_${operation}`;
}

function partitionName(partition: number): string {
  return `p${String(partition).padStart(5, "0")}`;
}

/** Of the restore with this number. */
export function claimName(ordinal: number): string {
  return `restore_${ordinal}.claim`;
}

/** Below the directory of the backup. */
export function imageName(partition: number): string {
  return `${IMAGE_FOLDER}/${partitionName(partition)}.image`;
}

export function logName(partition: number): string {
  return `${LOG_FOLDER}/${partitionName(partition)}.log`;
}

/** `name` on its way in or out: it counts only when it is renamed. `tag`: 8 hexadecimal digits. */
export function passingName(
  name: string,
  way: "tmp" | "staging" | "quarantine",
  tag: string,
): string {
  return `${name}.${way}_${tag}`;
}

/** The id of a backup whose manifest was put aside under this name; null: it is none. */
export function asideOf(name: string): string | null {
  return ASIDE.exec(name)?.[1] ?? null;
}

/** Whether `name` is what a restore stages in: see `passingName`. */
export function isStaging(name: string): boolean {
  return STAGING.test(name);
}

export type CatalogueName =
  | { readonly kind: "manifest" | "artifacts"; readonly id: string }
  /** `id`: of the backup that it belongs to, where the name tells. */
  | { readonly kind: "leftover"; readonly id: string | null }
  | { readonly kind: "lease"; readonly operation: string }
  | { readonly kind: "claim"; readonly ordinal: number }
  | { readonly kind: "foreign" };

/** What a name in the directory of backups stands for. */
export function catalogueName(name: string): CatalogueName {
  const [, operation] = LEASE.exec(name) ?? [];
  if (operation !== undefined) return { kind: "lease", operation };
  const [, id = null] = LEADING_ID.exec(name) ?? [];
  if (LEFTOVER.test(name)) return { kind: "leftover", id };
  if (id !== null && name === id) return { kind: "artifacts", id };
  if (id !== null && name === manifestName(id)) return { kind: "manifest", id };
  const [, ordinal] = CLAIM.exec(name) ?? [];
  return ordinal === undefined ? { kind: "foreign" } : { kind: "claim", ordinal: Number(ordinal) };
}
