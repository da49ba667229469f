/** A child of a sweep: see `sweep.ts`. */
import { parseOptions } from "../plan/options.js";
import { serveSeeds } from "./sweep.js";

const { profile, overrides } = parseOptions(process.argv.slice(2));
serveSeeds(profile, overrides);
