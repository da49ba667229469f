/**
 * Numbers that code and tests cite: pitfalls (`P-074`, `X-05`), rules of the contract (`S8`) and its sections ("contract
 * 5.3"). Each has to be defined in docs/pitfalls.md or docs/contract-rules.md, once.
 */

/** Letters that rules of the contract begin with: other letters before a number are something else. */
const RULES = /\b[BCKLST]\d{1,2}\b/g;
const PITFALLS = /\b[PX]-\d{2,3}\b/g;
/** One number, or several: "contract 5.2, 5.3", "Contract 4.3 K12 to K17", "contract (section 11)". */
const SECTIONS =
  /\bcontract,?\s+(?:\*\s+)?(?:\(?section\s+)?((?:\d{1,2}(?:\.\d{1,2})?(?:, and |, | and | to )?)+)/gi;
/** A curve of elliptic cryptography that looks like a pitfall. */
const NOT_A_PITFALL = new Set(["P-256"]);

export interface Defined {
  readonly pitfalls: ReadonlySet<string>;
  readonly rules: ReadonlySet<string>;
  readonly sections: ReadonlySet<string>;
  /** Numbers that are defined more than once. */
  readonly twice: readonly string[];
}

/** What the two registers define; the arguments are their texts. */
export function readRegisters(pitfalls: string, contract: string): Defined {
  const twice: string[] = [];
  const set = (ids: Iterable<string>): ReadonlySet<string> => {
    const seen = new Set<string>();
    for (const id of ids) {
      if (seen.has(id)) twice.push(id);
      seen.add(id);
    }
    return seen;
  };
  const first = (text: string, pattern: RegExp): string[] =>
    [...text.matchAll(pattern)].map((match) => match[1] as string);
  const sections = first(contract, /^\| (\d[\d., ]*) \|/gm).flatMap((cell) => cell.split(", "));
  return {
    pitfalls: set(first(pitfalls, /^- \*\*([PX]-\d+)\*\* \S/gm)),
    rules: set(first(contract, /^\| ([A-Z]\d+) \| \S/gm)),
    sections: set(sections),
    twice,
  };
}

function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split("\n").length;
}

/** Citations of `text` that nothing defines. Generated identifiers are not looked for: asm/ is left out by the caller. */
export function checkCitations(path: string, text: string, defined: Defined): string[] {
  const findings: string[] = [];
  const look = (pattern: RegExp, known: (id: string) => boolean, where: string): void => {
    for (const match of text.matchAll(pattern)) {
      if (known(match[0])) continue;
      findings.push(`${path}:${lineAt(text, match.index)}: ${match[0]} is not in ${where}`);
    }
  };
  const pitfall = (id: string): boolean => defined.pitfalls.has(id) || NOT_A_PITFALL.has(id);
  look(PITFALLS, pitfall, "docs/pitfalls.md");
  look(RULES, (id) => defined.rules.has(id), "docs/contract-rules.md");
  for (const match of text.matchAll(SECTIONS)) {
    for (const section of (match[1] as string).match(/\d+(?:\.\d+)?/g) ?? []) {
      if (defined.sections.has(section)) continue;
      const line = lineAt(text, match.index);
      findings.push(`${path}:${line}: contract ${section} is not in docs/contract-rules.md`);
    }
  }
  return findings;
}
