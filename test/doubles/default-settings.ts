/**
 * The settings of a node that is started without a flag: what tests, the simulator and benchmarks
 * run on. They come from the flags, so that a default stands in one place.
 */
import { PROGRAM } from "../../src/base/levels.js";
import type { HostSettings } from "../../src/host/settings.js";
import type { OperationsSettings } from "../../src/operations/api/settings.js";
import { type ServerConfig, makeConfig } from "../../src/server/flags/config.js";
import { readFlags } from "../../src/server/flags/flags.js";
import { hostSettings, operationsSettings } from "../../src/server/flags/floor-settings.js";

/** What no flag and no variable makes. */
export function defaultConfig(): ServerConfig {
  const raw = readFlags([], {});
  if (!raw.ok) throw new Error(raw.message);
  const config = makeConfig(raw.value, {});
  if (!config.ok) throw new Error(config.message);
  return config.value;
}

const config = defaultConfig();
const endpoint = `127.0.0.1:${config.peerPort}`;

/** A cluster of this node alone. */
export const DEFAULT_HOST_SETTINGS: HostSettings = hostSettings(config, {
  endpoint,
  clusterId: "",
  storageId: "",
  founders: [{ nodeId: config.nodeId, endpoint, storageId: "" }],
  entryLevel: PROGRAM.levels.max,
});

export const DEFAULT_OPERATIONS_SETTINGS: OperationsSettings = {
  ...operationsSettings(config, endpoint, () => "http://127.0.0.1:8083"),
};
