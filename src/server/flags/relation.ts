/** What a relation between configuration values is made of. Pure. */
import type { RawFlags } from "./flags.js";
import type { ServerConfig } from "./server-config.js";

/** The violated relation as a sentence for the operator, or null. */
export type Check = (config: ServerConfig, raw: RawFlags) => string | null;

export function outside(flag: string, value: number, least: number, most: number): string | null {
  return value >= least && value <= most
    ? null
    : `${flag} is ${value}; it must be ${least} to ${most}`;
}

export function firstOf(...violations: (string | null)[]): string | null {
  return violations.find((violation) => violation !== null) ?? null;
}
