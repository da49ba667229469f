/**
 * Loaded before the server (`--import`): it is the program of the minor release before, as far as levels, protocols and
 * its version go. It founds at level 1, speaks protocol 4, and refuses directories of level 2.
 */
import { PROGRAM } from "../../../src/base/levels.js";

const { levels, protocols } = PROGRAM;
Object.assign(PROGRAM, {
  levels: { min: levels.min, max: levels.max - 1 },
  protocols: { min: protocols.min, max: protocols.max - 1 },
  version: "0.1.0",
});
