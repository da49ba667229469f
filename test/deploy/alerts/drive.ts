/** What makes alerts fire, and ends it. */
import type { Field, Flags } from "./field.js";

export interface Drive {
  /** `Name 3`: that of node 3; `Name 0`: of the stand-in; `Name`: wherever it fires. */
  readonly alerts: readonly string[];
  /** What is done to the nodes. */
  readonly how: string;
  /** Why no node is brought to it: figures of one are shown instead. */
  readonly standsIn?: string;
  begin?(field: Field): Promise<unknown>;
  /** Done again and again until all of them fire. */
  again?(field: Field): Promise<unknown>;
  end?(field: Field): Promise<unknown>;
}

/** Drives one after the other on nodes of their own. That their alerts end is looked at when all of them are over. */
export interface Part {
  readonly name: string;
  readonly flags: Flags;
  readonly drives: readonly Drive[];
  /** A small disk at `small` of the stage: options of its mount. */
  readonly disk?: string;
  /** Before the nodes start. */
  prepare?(field: Field): Promise<unknown>;
  /** Starts them, until they are ready; null: there are none, and Prometheus looks at the stand-in. */
  readonly start: ((field: Field) => Promise<unknown>) | null;
}

export const plainly = async ({ stage }: Field): Promise<void> => {
  for (const id of [1, 2, 3]) stage.start(id);
  await stage.ready(1, 2, 3);
};
