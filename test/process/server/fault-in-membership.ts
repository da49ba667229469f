/** Loaded before the server (`--import`): its answer to one administrative call is a bug. */
import { Operations } from "../../../src/operations/operations.js";

Operations.prototype.membership = () => {
  throw new Error("planted");
};
