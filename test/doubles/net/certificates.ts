/** Certificates for tests: a CA of peers, and pairs that it signed. */
import "reflect-metadata";
import { webcrypto } from "node:crypto";
import * as x509 from "@peculiar/x509";
import type { PeerTls } from "../../../src/net/settings.js";

const DAY_MS = 86_400_000;
const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };

async function keyText(keys: webcrypto.CryptoKeyPair): Promise<string> {
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", keys.privateKey));
  return `-----BEGIN PRIVATE KEY-----\n${pkcs8.toString("base64")}\n-----END PRIVATE KEY-----\n`;
}

export class PeerAuthority {
  private constructor(
    private readonly keys: webcrypto.CryptoKeyPair,
    private readonly certificate: x509.X509Certificate,
  ) {}

  static async make(name: string): Promise<PeerAuthority> {
    x509.cryptoProvider.set(webcrypto);
    const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
    const certificate = await x509.X509CertificateGenerator.createSelfSigned({
      name: `CN=${name}`,
      signingAlgorithm: ALGORITHM,
      keys,
      extensions: [new x509.BasicConstraintsExtension(true, undefined, true)],
    });
    return new PeerAuthority(keys, certificate);
  }

  /** A pair for one node: it is server and client at once. `uris`: further names of it. */
  issue(name: string, ...uris: string[]): Promise<PeerTls> {
    return this.pair(name, uris, {});
  }

  /** One that began yesterday and ends in so many ms, which may be over. */
  issueUntil(name: string, endsInMs = DAY_MS): Promise<PeerTls> {
    const [notBefore, notAfter] = [new Date(Date.now() - DAY_MS), new Date(Date.now() + endsInMs)];
    return this.pair(name, [], { notBefore, notAfter });
  }

  private async pair(
    name: string,
    uris: readonly string[],
    validity: Pick<x509.X509CertificateCreateParams, "notBefore" | "notAfter">,
  ): Promise<PeerTls> {
    const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
    const certificate = await x509.X509CertificateGenerator.create({
      ...validity,
      subject: `CN=${name}`,
      issuer: this.certificate.subject,
      signingKey: this.keys.privateKey,
      publicKey: keys.publicKey,
      signingAlgorithm: ALGORITHM,
      extensions: [
        new x509.ExtendedKeyUsageExtension([
          x509.ExtendedKeyUsage.serverAuth,
          x509.ExtendedKeyUsage.clientAuth,
        ]),
        ...(uris.length === 0
          ? []
          : [
              new x509.SubjectAlternativeNameExtension([
                { type: "dns", value: "peer.example" },
                ...uris.map((value) => ({ type: "url", value }) as const),
              ]),
            ]),
      ],
    });
    return {
      certificate: certificate.toString("pem"),
      key: await keyText(keys),
      ca: this.certificate.toString("pem"),
    };
  }
}
