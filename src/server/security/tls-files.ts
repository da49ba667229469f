/**
 * Certificates, keys and CAs of the HTTPS listener and of the peers, from their files.
 *
 * Invariants: 1. What belongs together is read and checked as a whole. 2. A mistake names the flag
 * and the path.
 */
import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createSecureContext } from "node:tls";
import { failure, ok, type Result } from "../../base/result.js";
import type { PeerTls } from "../../net/settings.js";
import type { LoggerPort } from "../../ports.js";
import type { TlsMaterial } from "../../rest/http/https.js";
import { developmentCertificate, makeSelfSigned } from "./certificate.js";
import type { ServerConfig } from "../flags/config.js";

/** Files that may change while the node runs: of a certificate that was given, and the CA. */
export function tlsFiles(config: ServerConfig): readonly string[] {
  const { tlsCertFile, tlsKeyFile, tlsClientCaFile } = config;
  return [tlsCertFile, tlsKeyFile, tlsClientCaFile].filter((path) => path !== null);
}

/** Files of the peers' certificate, key and CA, which may change while the node runs. */
export function peerTlsFiles(config: ServerConfig): readonly string[] {
  const { peerTlsCertFile, peerTlsKeyFile, peerTlsCaFile } = config;
  return [peerTlsCertFile, peerTlsKeyFile, peerTlsCaFile].filter((path) => path !== null);
}

/** When the first certificate of a PEM text ends (seconds since 1970). */
export function expirySeconds(certificate: string | Buffer): number {
  return Date.parse(new X509Certificate(certificate).validTo) / 1000;
}

/** The text of a PEM file; throws with the flag and the path when it is none that `check` takes. */
function pemFile(flag: string, path: string, check: (text: string) => unknown): string {
  try {
    const text = readFileSync(path, "utf8");
    check(text);
    return text;
  } catch (error) {
    throw new Error(`${flag}: ${path} is not usable: ${(error as Error).message}`);
  }
}

/** Throws unless every certificate of a PEM file can be read, and there is one. */
function checkCertificates(text: string): void {
  const found = text.match(
    /^-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----[ \t]*\r?$/gm,
  );
  if (found === null) throw new Error("it holds no PEM certificate");
  // What stands behind another one on its line is read by nobody.
  if (found.length !== text.split("BEGIN CERTIFICATE").length - 1) {
    throw new Error("a certificate in it does not begin and end on lines of its own");
  }
  for (const certificate of found) new X509Certificate(certificate);
}

/** Certificate and key that belong together; throws with the flag and the path. */
function pemPair(
  flags: Readonly<Record<"certificate" | "key", string>>,
  certificatePath: string,
  keyPath: string,
): { readonly certificate: string; readonly key: string } {
  const certificate = pemFile(flags.certificate, certificatePath, checkCertificates);
  // The key is checked together with the certificate that it must belong to.
  const key = pemFile(flags.key, keyPath, (text) =>
    createSecureContext({ cert: certificate, key: text }),
  );
  return { certificate, key };
}

const HTTPS_FLAGS = { certificate: "--tls-cert", key: "--tls-key" } as const;
const PEER_FLAGS = { certificate: "--peer-tls-cert", key: "--peer-tls-key" } as const;

/** What peers know each other by; null where it is not configured. */
export function peerTlsTexts(config: ServerConfig): Result<PeerTls | null, "usage"> {
  const { peerTlsCertFile, peerTlsKeyFile, peerTlsCaFile } = config;
  if (peerTlsCertFile === null || peerTlsKeyFile === null || peerTlsCaFile === null) {
    return ok(null);
  }
  try {
    const ca = pemFile("--peer-tls-ca", peerTlsCaFile, checkCertificates);
    return ok({ ...pemPair(PEER_FLAGS, peerTlsCertFile, peerTlsKeyFile), ca });
  } catch (error) {
    return failure("usage", (error as Error).message);
  }
}

/** The development certificate where none is configured. */
export async function tlsTexts(
  config: ServerConfig,
  logger: LoggerPort,
): Promise<Result<TlsMaterial, "usage">> {
  try {
    const { tlsCertFile, tlsKeyFile, tlsClientCaFile } = config;
    const clientCa =
      tlsClientCaFile === null
        ? null
        : pemFile("--tls-client-ca", tlsClientCaFile, checkCertificates);
    const access = {
      clientCa,
      clientCertificateRequired: clientCa !== null && config.authTokensFile === null,
    };
    if (tlsCertFile !== null && tlsKeyFile !== null) {
      return ok({ ...pemPair(HTTPS_FLAGS, tlsCertFile, tlsKeyFile), ...access });
    }
    if (config.storage === "memory") {
      logger.log("warn", "using a self-signed development certificate, made for this run");
      return ok({ ...(await makeSelfSigned("svc-dev")), ...access });
    }
    const directory = join(config.storagePath, "tls");
    const pair = await developmentCertificate(directory);
    logger.log("warn", "using a self-signed development certificate", {
      directory,
      made: pair.made,
    });
    return ok({ certificate: pair.certificate, key: pair.key, ...access });
  } catch (error) {
    return failure("usage", (error as Error).message);
  }
}
