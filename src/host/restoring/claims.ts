/**
 * How restores are counted: each one leaves a claim, in the catalogue that it reads and in the root
 * that it writes below, with what it set.
 *
 * Invariants: 1. A claim is made by exclusive creation, is durable before anything that it stands
 * for gets a name, and is never taken back. 2. Whoever made one looks at all others again: one that
 * came, or came to its end, meanwhile voids it, and another is made above. So of two restores that
 * end, one knew what the other set, whatever they waited for between (P-137). 3. A claim that a
 * crash cut short stands for no restore; one that is damaged may stand for one, and ends the
 * restore.
 */
import { decodeText, encodeText } from "../../base/bytes.js";
import { parseFloor } from "./restored-mark.js";
import { failure, ok } from "../../base/result.js";
import type { RestoredFloors } from "../../machine/restoring/lifted.js";
import type { ArchivePort, SignaturePort } from "../../ports.js";
import { artifactFault, systemFault } from "../../backup/faults.js";
import { catalogueName, claimName } from "../../backup/names.js";
import { readFile } from "../../backup/steps.js";
import type { RestoreDone, RestoreResult } from "./restore-faults.js";

/** All claims have this size: a shorter one was never finished. */
const CLAIM_BYTES = 1024;
const CLAIMS_MAX = 4096;
const KIND = "svc-restore-claim";
const VERSION = 1;
/** Others that claim at the same time are in the way so often at most. */
const TRIES_MAX = 16;

export interface Claim {
  readonly ordinal: number;
  /** 32 hexadecimal digits. */
  readonly leafId: string;
  /** Unix milliseconds. */
  readonly atMs: number;
  readonly node: string;
  /** What the restore sets: the largest over all partitions. */
  readonly floors: RestoredFloors;
}

/** What no restore set yet. */
export const NO_FLOORS: RestoredFloors = { tokenFloor: 0n, ephemeralFloor: 0n, incarnation: 0 };

function encodeClaim(claim: Claim, signatures: SignaturePort): Uint8Array {
  const { ordinal, leafId, atMs, node, floors } = claim;
  const body = JSON.stringify({
    ...{ kind: KIND, version: VERSION, ordinal, leafId, atMs, node: node.slice(0, 128) },
    ...{ tokenFloor: String(floors.tokenFloor), ephemeralFloor: String(floors.ephemeralFloor) },
    incarnation: floors.incarnation,
  });
  const text = `${body}\n${signatures.sha256(encodeText(body))}`;
  const bytes = new Uint8Array(CLAIM_BYTES).fill(0x20);
  bytes.set(encodeText(text));
  bytes[CLAIM_BYTES - 1] = 0x0a;
  return bytes;
}

/** null: it was never finished. */
export function decodeClaim(
  path: string,
  ordinal: number,
  bytes: Uint8Array,
  signatures: SignaturePort,
): RestoreResult<Claim | null> {
  if (bytes.length < CLAIM_BYTES) return ok(null);
  const damaged = failure(
    "CorruptArtifact",
    `"${path}" is damaged: what the restore set that it stands for is not known`,
  );
  const whole = decodeText(bytes);
  if (bytes.length !== CLAIM_BYTES || whole === null || !whole.endsWith("\n")) return damaged;
  const [body = "", rest = ""] = whole.split("\n");
  if (rest.trimEnd() !== signatures.sha256(encodeText(body))) return damaged;
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    return damaged;
  }
  const members = new Map<string, unknown>(Object.entries(parsed as object));
  const version = members.get("version");
  if (members.get("kind") !== KIND || typeof version !== "number") return damaged;
  if (version !== VERSION) return failure("UnsupportedFormat", `"${path}" has version ${version}`);
  const tokenFloor = parseFloor(String(members.get("tokenFloor")));
  const ephemeralFloor = parseFloor(String(members.get("ephemeralFloor")));
  const incarnation = members.get("incarnation");
  const isWhole =
    members.get("ordinal") === ordinal &&
    tokenFloor !== null &&
    ephemeralFloor !== null &&
    Number.isSafeInteger(incarnation);
  if (!isWhole) return damaged;
  const floors = { tokenFloor, ephemeralFloor, incarnation: incarnation as number };
  const leafId = String(members.get("leafId"));
  const node = String(members.get("node"));
  return ok({ ordinal, leafId, atMs: Number(members.get("atMs")), node, floors });
}

/** The claims of one directory, by ordinal; null: never finished. */
type Claims = ReadonlyMap<number, Claim | null>;

/** Reads all claims in a directory. */
function readClaims(
  archive: ArchivePort,
  signatures: SignaturePort,
  done: RestoreDone<Claims>,
): void {
  archive.list("", (listed) => {
    if (!listed.ok) return done(systemFault(listed));
    const ordinals: number[] = [];
    for (const { name } of listed.value) {
      const is = catalogueName(name);
      if (is.kind === "claim") ordinals.push(is.ordinal);
    }
    if (ordinals.length > CLAIMS_MAX) {
      return done(failure("IoError", `There are more than ${CLAIMS_MAX} claims of restores.`));
    }
    const claims = new Map<number, Claim | null>();
    const next = (at: number): void => {
      const ordinal = ordinals[at];
      if (ordinal === undefined) return done(ok(claims));
      const path = claimName(ordinal);
      readFile(archive, path, CLAIM_BYTES, (bytes) => {
        if (!bytes.ok) return done(artifactFault(bytes));
        const claim = decodeClaim(path, ordinal, bytes.value, signatures);
        if (!claim.ok) return done(claim);
        claims.set(ordinal, claim.value);
        next(at + 1);
      });
    };
    next(0);
  });
}

/** The larger of both, each floor for itself. */
export function largestFloors(a: RestoredFloors, b: RestoredFloors): RestoredFloors {
  return {
    tokenFloor: a.tokenFloor > b.tokenFloor ? a.tokenFloor : b.tokenFloor,
    ephemeralFloor: a.ephemeralFloor > b.ephemeralFloor ? a.ephemeralFloor : b.ephemeralFloor,
    incarnation: Math.max(a.incarnation, b.incarnation),
  };
}

function floorsOf(all: readonly Claims[]): RestoredFloors {
  let floors = NO_FLOORS;
  for (const claims of all) {
    for (const claim of claims.values()) {
      if (claim !== null) floors = largestFloors(floors, claim.floors);
    }
  }
  return floors;
}

/** Whether everything but the claim `own` is as it was. */
function isUnchanged(before: Claims, after: Claims, own: number): boolean {
  for (const [ordinal, claim] of after) {
    if (ordinal === own) continue;
    const known = before.get(ordinal);
    if (known === undefined || (known === null) !== (claim === null)) return false;
  }
  return true;
}

export interface TakenClaim {
  readonly ordinal: number;
  /** What earlier restores set. */
  readonly earlier: RestoredFloors;
}

export interface ClaimOrder {
  readonly leafId: string;
  readonly node: string;
  nowMs(): number;
  /** What the restore sets after earlier ones set this; null: too much, it is refused. */
  floorsAfter(earlier: RestoredFloors): RestoredFloors | null;
}

/** Counts a restore: in the catalogue, and in the root that it writes below. */
export function takeClaim(
  { backups, targets }: { readonly backups: ArchivePort; readonly targets: ArchivePort },
  signatures: SignaturePort,
  order: ClaimOrder,
  done: RestoreDone<TakenClaim>,
): void {
  const places = [backups, targets];
  const readAll = (read: RestoreDone<readonly Claims[]>): void => {
    readClaims(backups, signatures, (first) => {
      if (!first.ok) return read(first);
      readClaims(targets, signatures, (second) => {
        read(second.ok ? ok([first.value, second.value]) : second);
      });
    });
  };
  const attempt = (count: number): void => {
    if (count === TRIES_MAX) {
      return done(failure("IoError", "Other restores of the catalogue are in the way."));
    }
    readAll((before) => {
      if (!before.ok) return done(before);
      const earlier = floorsOf(before.value);
      const floors = order.floorsAfter(earlier);
      if (floors === null) {
        return done(failure("IoError", "A floor of tokens would be larger than 2^62."));
      }
      const known = before.value.flatMap((claims) => [...claims.keys()]);
      const ordinal = known.reduce((most, one) => Math.max(most, one), 0) + 1;
      const { leafId, node } = order;
      const claim = { ordinal, leafId, atMs: order.nowMs(), node, floors };
      const bytes = encodeClaim(claim, signatures);
      const write = (at: number): void => {
        const place = places[at];
        if (place === undefined) return look();
        writeClaim(place, ordinal, bytes, (written) => {
          if (!written.ok) return done(written);
          if (written.value === "exists") return attempt(count + 1);
          write(at + 1);
        });
      };
      const look = (): void => {
        readAll((after) => {
          if (!after.ok) return done(after);
          const same = before.value.every((claims, at) =>
            isUnchanged(claims, after.value[at] ?? new Map<number, null>(), ordinal),
          );
          if (!same) return attempt(count + 1);
          done(ok({ ordinal, earlier }));
        });
      };
      write(0);
    });
  };
  attempt(0);
}

function writeClaim(
  archive: ArchivePort,
  ordinal: number,
  bytes: Uint8Array,
  done: RestoreDone<"made" | "exists">,
): void {
  archive.create(claimName(ordinal), (created) => {
    if (!created.ok && created.code === "exists") return done(ok("exists"));
    if (!created.ok) return done(systemFault(created));
    const writer = created.value;
    writer.write(bytes, (written) => {
      if (!written.ok) return writer.abandon(() => done(systemFault(written)));
      writer.finish((finished) => {
        if (!finished.ok) return done(systemFault(finished));
        archive.syncDirectory("", (synced) => {
          done(synced.ok ? ok("made") : systemFault(synced));
        });
      });
    });
  });
}
