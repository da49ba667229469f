/** How a call ends that does not end with OK. */
export interface Failure {
  /** A status of gRPC. */
  readonly code: number;
  readonly details: string;
  /** Fields beside the status; null = none. */
  readonly trailers: Readonly<Record<string, string>> | null;
}

export function failureOf(
  code: number,
  details: string,
  trailers: Readonly<Record<string, string>> | null = null,
): Failure {
  return { code, details, trailers };
}
