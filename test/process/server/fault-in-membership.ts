/** Loaded before the server (`--import`): its answer to one administrative call is a bug. */
import { Cluster } from "../../../src/operations/cluster/cluster.js";

Cluster.prototype.membership = () => {
  throw new Error("planted");
};
