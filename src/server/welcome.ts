/**
 * What `npm start` tells a newcomer: where the node listens, where its data is, and three things to
 * try.
 */
import type { ListenAddresses } from "./assemble.js";
import type { ServerConfig } from "./flags/config.js";

export function welcomeText(addresses: ListenAddresses, config: ServerConfig): string {
  const base =
    addresses.https !== null
      ? `-k https://${addresses.https}`
      : addresses.http !== null
        ? `http://${addresses.http}`
        : null;
  const json = "-H 'content-type: application/json'";
  const lines = [
    "",
    `  REST   ${addresses.https === null ? "off" : `https://${addresses.https}`}`,
    `  gRPC   ${addresses.grpc === null ? "off" : `http://${addresses.grpc} (plain text, reflection on)`}`,
    `  data   ${config.storage === "memory" ? "in memory, gone at exit" : config.storagePath}`,
  ];
  if (base !== null) {
    lines.push(
      "",
      "  Try, in another terminal:",
      "",
      `    curl ${base}/v1/sequences/create ${json} -d '{"name":"orders"}'`,
      `    curl ${base}/v1/sequences/next   ${json} -d '{"name":"orders"}'`,
      `    curl ${base}/v1/locks/try-lock   ${json} -d '{"resource":"job","owner":"me","expiresMs":30000}'`,
    );
  }
  lines.push("", "  Ctrl+C stops it; the data stays.", "");
  return `${lines.join("\n")}\n`;
}
