/**
 * What an operator may read of a node to find out what is wrong with it (contract 5.7).
 *
 * Types only.
 */
export interface NodeDebugPort {
  /**
   * Makes one JSON object of all of it. `profileSeconds`: with a profile of the processor over so
   * many seconds, 0 = without. `done` hears its text, once, in no turn of the call; null: one is
   * being made, or the node ends.
   */
  make(profileSeconds: number, done: (text: string | null) => void): void;
}
