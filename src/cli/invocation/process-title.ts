/**
 * Hides a token of the command line from the list of processes, as early as a program can: main.ts
 * imports this first.
 *
 * Owns the title of the process when there is something to hide. Invariants: 1. The words of a
 * command after `--` or `--exec` are not ours and stay. 2. Until this runs (some 40 ms) the token
 * can be seen: a token file or SVC_TOKEN never shows.
 */
const NAME = "--token";
const HIDDEN = "***";

/** The title for `words` (without the program), or null when they hold no token. */
export function titleWithoutToken(words: readonly string[]): string | null {
  const end = words.findIndex((word) => word === "--" || word === "--exec");
  const own = end < 0 ? words : words.slice(0, end);
  if (!own.some((word) => word === NAME || word.startsWith(`${NAME}=`))) return null;
  const shown = words.map((word, at) => {
    if (at >= own.length) return word;
    if (word.startsWith(`${NAME}=`)) return `${NAME}=${HIDDEN}`;
    return words[at - 1] === NAME ? HIDDEN : word;
  });
  return ["svc-cli", ...shown].join(" ");
}

const title = titleWithoutToken(process.argv.slice(2));
if (title !== null) process.title = title;
