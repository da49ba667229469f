/**
 * What a format is to the frozen bytes: values that say a lot of it, how they are written, and how
 * they are read again.
 *
 * Invariant: a value as text tells all of it, so that bytes which are read as something else than
 * was written are noticed even where they would be written back the same.
 */
export interface Format {
  /** The number of the version that is written. */
  readonly version: number;
  /** Values to freeze; the same at every call. */
  samples(): readonly Sample[];
  /** Throws when the bytes cannot be read. */
  read(bytes: Uint8Array): Sample;
}

/** One value of a format. */
export interface Sample {
  /** All of it, as JSON. */
  readonly text: string;
  /** As the program writes it. */
  write(): Uint8Array;
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}

/** `value` as JSON, members by name: bigints end with n, bytes begin with 0x. */
function textOf(value: unknown): string {
  return JSON.stringify(value, (_name, part: unknown) => {
    if (typeof part === "bigint") return `${part}n`;
    if (part instanceof Uint8Array) return `0x${hex(part)}`;
    if (typeof part !== "object" || part === null || Array.isArray(part)) return part;
    const members = Object.entries(part).sort(([one], [other]) => (one < other ? -1 : 1));
    return Object.fromEntries(members);
  });
}

/** `read`: null = the bytes are none of the format. */
export function format<T>(
  version: number,
  values: readonly T[],
  write: (value: T) => Uint8Array,
  read: (bytes: Uint8Array) => T | null,
): Format {
  const sampleOf = (value: T): Sample => ({
    text: textOf(value),
    write: () => Uint8Array.from(write(value)),
  });
  return {
    version,
    samples: () => values.map(sampleOf),
    read(bytes) {
      const value = read(bytes);
      if (value === null) throw new Error("the bytes cannot be read");
      return sampleOf(value);
    },
  };
}
