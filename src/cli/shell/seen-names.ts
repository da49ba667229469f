/**
 * Names that were typed or answered lately, for completion.
 *
 * Invariants: 1. At most 200 names of each kind, the newest first.
 */

export type NameKind = "key" | "resource" | "sequence" | "backup";

const KEPT_MAX = 200;
const NAME_MAX_CHARACTERS = 200;

export class SeenNames {
  private readonly names = new Map<NameKind, string[]>();

  add(kind: NameKind, name: string): void {
    if (name === "" || name.length > NAME_MAX_CHARACTERS) return;
    const known = this.names.get(kind) ?? [];
    this.names.set(kind, [name, ...known.filter((other) => other !== name)].slice(0, KEPT_MAX));
  }

  of(kind: NameKind): readonly string[] {
    return this.names.get(kind) ?? [];
  }
}
