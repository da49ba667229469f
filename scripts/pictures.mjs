/** `npm run pictures`: takes the pictures of docs/console.md anew, in a real browser; see test/console/pictures.ts. */
import { setup } from "./setup.mjs";

await setup();
await import("../dist/test/console/pictures.js");
