/** A certificate for the listeners of the tests. */
import { webcrypto } from "node:crypto";

let made: Promise<{ readonly key: string; readonly cert: string }> | null = null;

/** A self-signed certificate for localhost; the same one in a process. */
export function certificate(): Promise<{ readonly key: string; readonly cert: string }> {
  made ??= makeCertificate();
  return made;
}

/** A self-signed certificate for localhost, made by the certificate library of the project. */
async function makeCertificate(): Promise<{ readonly key: string; readonly cert: string }> {
  await import("reflect-metadata");
  const x509 = await import("@peculiar/x509");
  x509.cryptoProvider.set(webcrypto as never);
  const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const cert = await x509.X509CertificateGenerator.createSelfSigned({
    name: "CN=localhost",
    notBefore: new Date(Date.now() - 60_000),
    notAfter: new Date(Date.now() + 3_600_000),
    signingAlgorithm: algorithm,
    keys: keys as never,
    extensions: [new x509.SubjectAlternativeNameExtension([{ type: "dns", value: "localhost" }])],
  });
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", keys.privateKey));
  const lines = pkcs8.toString("base64").replace(/.{64}/g, "$&\n");
  const key = `-----BEGIN PRIVATE KEY-----\n${lines}\n-----END PRIVATE KEY-----\n`;
  return { key, cert: cert.toString("pem") };
}
