/**
 * One real node for the tests of a file, and clients of it. It ends with the tests.
 */
import t from "tap";
import { SvcClient } from "../../../src/client/mod.js";
import { endAll, nodeFlags, ServerProcess, temporaryDirectory } from "../cluster/server-process.js";

const directory = temporaryDirectory();
const { grpc, http } = await new ServerProcess(nodeFlags(directory.path)).ready();

/** One that is there for all tests. */
export const direct = new SvcClient({ endpoints: grpc });

t.teardown(async () => {
  await direct.close();
  await endAll();
  directory.remove();
});

/** One that the test closes. */
export function clientOf(transport: "grpc" | "rest"): SvcClient {
  return new SvcClient({ endpoints: transport === "grpc" ? grpc : http, transport });
}
