/** What connections tell whoever has them. */

/** What the owner of the connections is told. */
export interface ConnectionOwner {
  /** The client took back too many calls. */
  endedForResets(): void;
  /** The connection is gone. */
  gone(connection: object): void;
  /** The last call of the connection is over. */
  rests(): void;
}
