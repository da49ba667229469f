/** `npm run compat-freeze`: freezes what this release writes, once. */
import { VERSION } from "../../src/base/generated/version.js";
import { freezeDirectory } from "./directory.js";
import { folderOf, freezeFormats, releaseOf } from "./frozen.js";

/** The exit code: 1 when the release is frozen already. */
export async function main(): Promise<number> {
  const release = releaseOf(VERSION);
  try {
    freezeFormats(release);
  } catch (error) {
    console.error((error as Error).message);
    return 1;
  }
  await freezeDirectory(release);
  console.log(`frozen: ${folderOf(release)}`);
  return 0;
}
