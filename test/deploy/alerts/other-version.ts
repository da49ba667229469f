/** Loaded before the modules of the server (`--import`): it is a program of another version. */
import { register } from "node:module";

const hooks = `
export async function load(url, context, next) {
  if (!url.endsWith("/base/generated/version.js")) return next(url, context);
  return { format: "module", source: 'export const VERSION = "0.0.1";', shortCircuit: true };
}`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);
