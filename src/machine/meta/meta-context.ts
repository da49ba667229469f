/** What decisions of the meta partition see: its records too, as they were decoded last. */
import type { DecisionContext } from "../decision/context.js";
import type { MetaReads } from "./meta-reads.js";

export interface MetaContext extends DecisionContext {
  /** Of the rows of the context. */
  readonly meta: MetaReads;
}
