/** Loaded into a server process before its own program: collects all garbage on SIGUSR2. Needs --expose-gc. */
process.on("SIGUSR2", () => void globalThis.gc?.());
