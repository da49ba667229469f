/** The web console: its first moment in a page. */
import { Shell } from "./shell.js";

new Shell().start();
