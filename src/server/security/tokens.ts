/**
 * Bearer tokens and client certificates: who a caller is and what it may do.
 *
 * Owns the content of the token file. Invariants: 1. Only SHA-256 digests are held; comparison
 * takes constant time and visits every entry. 2. A bad file stops the start; on reload the old
 * content stays and an error is logged. 3. Names, never tokens, appear in logs. 4. A presented
 * token decides alone.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { failure, ok, type Result } from "../../base/result.js";
import type { Caller, ClientCertificate, Role } from "../../rest/http/access.js";
import { readSecretFile } from "./secret-file.js";
import { WatchedFiles } from "./watched-files.js";

interface TokenEntry {
  readonly caller: Caller;
  readonly digest: Buffer;
}

const TOKEN_PATTERN = /^[\x21-\x7e]{16,256}$/;

/** The digest part of a token file line. */
export function tokenDigestText(token: string): string {
  return `sha256:${createHash("sha256").update(token, "utf8").digest("hex")}`;
}

/** True for 16 to 256 visible ASCII characters. */
export function isTokenText(token: string): boolean {
  return TOKEN_PATTERN.test(token);
}

function parseTokens(text: string, path: string): Result<TokenEntry[], "usage"> {
  const entries: TokenEntry[] = [];
  for (const [at, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    const match = /^(\S+) (\S+) sha256:([0-9a-fA-F]{64})(?: rate=(\d{1,9}))?$/.exec(line.trim());
    const role = match?.[1];
    if (match === null || (role !== "reader" && role !== "writer" && role !== "admin")) {
      return failure(
        "usage",
        `${path} line ${at + 1}: expected "<reader|writer|admin> <name> sha256:<64 hex digits> [rate=<n>]"`,
      );
    }
    const rate = match[4] === undefined ? undefined : Number(match[4]);
    entries.push({
      caller: { role, name: match[2] as string, ...(rate === undefined ? {} : { rate }) },
      digest: Buffer.from(match[3] as string, "hex"),
    });
  }
  return ok(entries);
}

function readTokens(path: string): Result<TokenEntry[], "usage"> {
  const text = readSecretFile(path, "the token file");
  return text.ok ? parseTokens(text.value, path) : text;
}

function namesOf(entries: readonly TokenEntry[]): string[] {
  return entries.map(({ caller }) => caller.name);
}

/** Hears of a reload: its mistake, or null and the names that came and went. */
export type ReloadReport = (
  mistake: string | null,
  added: readonly string[],
  removed: readonly string[],
) => void;

export class TokenFile {
  private readonly path: string;
  private entries: readonly TokenEntry[];
  private readonly file: WatchedFiles;
  private readonly report: ReloadReport;

  private constructor(path: string, entries: readonly TokenEntry[], report: ReloadReport) {
    this.path = path;
    this.entries = entries;
    this.report = report;
    this.file = new WatchedFiles([path], () => this.reload());
  }

  /**
   * Reads `path`; `report` hears null after a reload that worked and the mistake after one that did
   * not.
   */
  static open(path: string, report: ReloadReport): Result<TokenFile, "usage"> {
    const entries = readTokens(path);
    return entries.ok ? ok(new TokenFile(path, entries.value, report)) : entries;
  }

  reload(): void {
    this.file.taken();
    const entries = readTokens(this.path);
    if (!entries.ok) return this.report(entries.message, [], []);
    const before = namesOf(this.entries);
    const after = namesOf(entries.value);
    this.entries = entries.value;
    const added = after.filter((name) => !before.includes(name));
    const removed = before.filter((name) => !after.includes(name));
    this.report(null, added, removed);
  }

  /** The caller that `token` names, or null. */
  find(token: string): Caller | null {
    const digest = createHash("sha256").update(token, "utf8").digest();
    let found: Caller | null = null;
    for (const entry of this.entries) {
      if (timingSafeEqual(entry.digest, digest)) found = entry.caller;
    }
    return found;
  }

  close(): void {
    this.file.close();
  }
}

const EVERYBODY: Caller = { role: "admin", name: "anonymous" };

/**
 * Decides who is calling from the authorization text and the verified client certificate of a
 * request.
 */
export class Authenticator {
  private readonly tokens: TokenFile | null;
  private readonly certificates: boolean;

  constructor(tokens: TokenFile | null, certificates: boolean) {
    this.tokens = tokens;
    this.certificates = certificates;
  }

  /** True when every request needs credentials. */
  get required(): boolean {
    return this.tokens !== null || this.certificates;
  }

  authenticate(authorization: string | null, certificate: ClientCertificate | null): Caller | null {
    if (!this.required) return EVERYBODY;
    if (authorization !== null && authorization !== "") {
      const match = /^bearer +([\x21-\x7e]+)$/i.exec(authorization);
      const token = match?.[1];
      if (token === undefined || !isTokenText(token)) return null;
      return this.tokens?.find(token) ?? null;
    }
    return this.certificates && certificate !== null ? certificateCaller(certificate) : null;
  }
}

function certificateCaller(certificate: ClientCertificate): Caller {
  const units = certificate.organizationalUnits;
  const role: Role = units.includes("svc-admin")
    ? "admin"
    : units.includes("svc-writer")
      ? "writer"
      : "reader";
  return { role, name: certificate.commonName };
}
