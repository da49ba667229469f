/** Loaded before the modules of the server (`--import`): what it applies it applies otherwise than the others (a bug). */
import { Machine } from "../../../src/machine/machine.js";

const { apply } = Machine.prototype;

Machine.prototype.apply = function (entry, commands, outcomes) {
  apply.call(this, { ...entry, leaseMs: entry.leaseMs + 1 }, commands, outcomes);
};
