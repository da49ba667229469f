/** One real server process with everything that reaches it. */
import type { Test } from "tap";
import { ServerProcess, nodeFlags, temporaryDirectory } from "../cluster/server-process.js";
import { GrpcCaller } from "./wire.js";

export interface Node {
  readonly server: ServerProcess;
  readonly directory: string;
  /** Base URLs. */
  readonly http: string;
  readonly https: string;
  readonly grpcUrl: string;
  readonly grpcAddress: string;
  readonly grpc: GrpcCaller;
}

/** Starts a node on free ports, HTTPS included, and ends it with the test. */
export async function startNode(t: Test, ...flags: string[]): Promise<Node> {
  const directory = temporaryDirectory();
  const given = ["--https-port=0", ...flags];
  const names = new Set(given.map((flag) => flag.split("=")[0]));
  const others = nodeFlags(directory.path).filter((flag) => !names.has(flag.split("=")[0]));
  const server = new ServerProcess([...others, ...given]);
  t.teardown(async () => {
    await server.kill();
    directory.remove();
  });
  const addresses = await server.ready();
  const grpc = new GrpcCaller(addresses.grpc);
  t.teardown(() => grpc.close());
  return {
    server,
    directory: directory.path,
    http: `http://${addresses.http}`,
    https: `https://${addresses.https}`,
    grpcUrl: `http://${addresses.grpc}`,
    grpcAddress: addresses.grpc,
    grpc,
  };
}
