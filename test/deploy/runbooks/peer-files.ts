/** Certificate, key and CA of a node towards its peers, as files that are put in the place of others. */
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { PeerTls } from "../../../src/net/settings.js";

const FILES = { certificate: "tls.crt", key: "tls.key", ca: "ca.crt" } as const;

export function putPeerFiles(folder: string, files: PeerTls): void {
  mkdirSync(folder, { recursive: true });
  for (const [member, name] of Object.entries(FILES)) {
    const text = String(files[member as keyof typeof FILES]);
    writeFileSync(join(folder, `${name}.new`), text, { mode: 0o600 });
    renameSync(join(folder, `${name}.new`), join(folder, name));
  }
}

export function peerFlags(folder: string): readonly string[] {
  return [
    `--peer-tls-cert=${join(folder, FILES.certificate)}`,
    `--peer-tls-key=${join(folder, FILES.key)}`,
    `--peer-tls-ca=${join(folder, FILES.ca)}`,
  ];
}
