/** Who hears of calls, for metrics. Types only. */
export interface CallObserver {
  /** So many streams that may live long are open now. */
  streams(open: number): void;
  /** `code`: as sent; CANCELLED when the client went away before. */
  ended(path: string, code: string): void;
  /** No or wrong credentials. */
  unauthenticated(isSecure: boolean): void;
}
