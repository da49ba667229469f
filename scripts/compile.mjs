/**
 * How one module of TypeScript (or JavaScript) becomes the JavaScript that stands in dist/: each file by itself, types
 * taken away, not checked. The build compiles with it, and the tests that plant bugs in sources.
 */

/** The JavaScript of `text`. `path`: absolute; its ending says the language, and the map of the source names it. */
export async function compile(path, text) {
  // Loaded late: scripts that set up a fresh clone import this file before there are packages.
  const { transform } = await import("esbuild");
  const loader = path.endsWith(".ts") ? "ts" : "js";
  const { code } = await transform(text, {
    loader,
    format: "esm",
    target: "node20",
    sourcefile: path,
    sourcemap: loader === "ts" ? "inline" : false,
    sourcesContent: false,
  });
  return code;
}
