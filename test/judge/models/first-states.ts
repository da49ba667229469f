/**
 * What the objects of a history began with, where its cluster did not begin with nothing: one that was
 * restored. Types only.
 *
 * Invariant: null says that there was no such object.
 */
import type { KeptRevisions } from "./kept-revisions.js";
import type { KvState } from "./kv.js";
import type { LockState } from "./lock.js";
import type { RememberedKeys, SequenceState } from "./sequence-state.js";

/** Of persistent objects. */
export interface FirstStates {
  lock(resource: string): LockState | null;
  /** `kept`: the lists of the model that is asked for. */
  key(key: string, kept: KeptRevisions): KvState | null;
  sequence(name: string, remembered: RememberedKeys): SequenceState | null;
}
