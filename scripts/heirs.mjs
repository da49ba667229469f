import { setup } from "./setup.mjs";
await setup();

// Histories of locks with heirs: `SVC_HISTORIES=N SVC_SEED=N SVC_STATES=N npm run heirs`.
await import("../dist/test/unit/machine/succession/main.js");
