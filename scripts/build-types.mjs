/**
 * Writes the declarations of the client library to dist/types, for programs that import the package.
 *
 * Owns dist/types. What is marked @internal is left out.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "./build.mjs";

const folder = mkdtempSync(join(tmpdir(), "svc-types-"));
const project = join(folder, "tsconfig.json");
writeFileSync(
  project,
  JSON.stringify({
    extends: join(root, "tsconfig.json"),
    compilerOptions: {
      noEmit: false,
      declaration: true,
      emitDeclarationOnly: true,
      stripInternal: true,
      rootDir: join(root, "src"),
      outDir: join(root, "dist", "types"),
      typeRoots: [join(root, "node_modules", "@types")],
    },
    include: [],
    files: [join(root, "src", "client", "mod.ts")],
  }),
);
const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
const { status } = spawnSync(process.execPath, [compiler, "-p", project], { stdio: "inherit" });
rmSync(folder, { recursive: true, force: true });
process.exitCode = status ?? 1;
