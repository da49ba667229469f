/**
 * The self-signed development certificate, made on first start and kept in {storage-path}/tls.
 *
 * Invariants: 1. Key and certificate belong together: both are written before either is used. 2.
 * The key file is mode 0600. 3. The certificate names only this machine (localhost, 127.0.0.1,
 * ::1).
 */
import { createPrivateKey, webcrypto, X509Certificate } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface CertificatePair {
  readonly certificate: string;
  readonly key: string;
}

const VALID_DAYS = 3650;
const DAY_MS = 24 * 3_600_000;

function readPair(directory: string): CertificatePair | null {
  try {
    const certificate = readFileSync(join(directory, "development.crt"), "utf8");
    const key = readFileSync(join(directory, "development.key"), "utf8");
    const parsed = new X509Certificate(certificate);
    const lasts = Date.parse(parsed.validTo) > Date.now() + DAY_MS;
    // A crash between the two renames leaves a new key beside an old certificate.
    return lasts && parsed.checkPrivateKey(createPrivateKey(key)) ? { certificate, key } : null;
  } catch {
    return null;
  }
}

/** Makes a pair for `commonName`, valid for localhost names only. */
export async function makeSelfSigned(commonName: string): Promise<CertificatePair> {
  // A third of a node's start is the reading of these: only a start that makes a certificate pays it.
  await import("reflect-metadata");
  const x509 = await import("@peculiar/x509");
  const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  x509.cryptoProvider.set(webcrypto);
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const now = Date.now();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=${commonName}`,
    notBefore: new Date(now - DAY_MS),
    notAfter: new Date(now + VALID_DAYS * DAY_MS),
    signingAlgorithm: algorithm,
    keys: keys,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension([
        { type: "dns", value: "localhost" },
        { type: "ip", value: "127.0.0.1" },
        { type: "ip", value: "::1" },
      ]),
    ],
  });
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", keys.privateKey));
  const body = pkcs8
    .toString("base64")
    .replace(/(.{64})/g, "$1\n")
    .trimEnd();
  return {
    certificate: certificate.toString("pem"),
    key: `-----BEGIN PRIVATE KEY-----\n${body}\n-----END PRIVATE KEY-----\n`,
  };
}

/** The development pair of `directory`, made there when it is absent or about to expire. */
export async function developmentCertificate(
  directory: string,
): Promise<CertificatePair & { readonly made: boolean }> {
  const existing = readPair(directory);
  if (existing !== null) return { ...existing, made: false };
  const pair = await makeSelfSigned("svc-dev");
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  for (const [name, text] of [
    ["development.key", pair.key],
    ["development.crt", pair.certificate],
  ] as const) {
    const path = join(directory, name);
    writeFileSync(`${path}.new`, text, { mode: 0o600 });
    renameSync(`${path}.new`, path);
  }
  return { ...pair, made: true };
}
