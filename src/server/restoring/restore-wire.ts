/** What travels between a server and the process in which it has a backup restored. Types only. */
import type {
  RestoreEnd,
  RestoreProgress,
  RestoreRequest,
} from "../../host/restoring/restore-types.js";
import type { RestoreSettings, StagedRestore } from "../../host/restoring/restore-ports.js";

/** The argument that makes a process one that restores. */
export const RESTORE_CHILD = "--restore-child";

export interface RestoreJob {
  readonly request: RestoreRequest;
  readonly settings: Omit<RestoreSettings, "program">;
  readonly backupDir: string;
  /** Key of signatures; null: there is none. */
  readonly key: Uint8Array | null;
  readonly storeMaxBytes: number;
  readonly kernels: "wasm" | "twin";
}

export type ToChild =
  { readonly kind: "job"; readonly job: RestoreJob } | { readonly kind: "cancel" };

export type ToServer =
  | { readonly kind: "staged"; readonly staged: StagedRestore }
  | { readonly kind: "progress"; readonly progress: RestoreProgress }
  | { readonly kind: "log"; readonly level: "info" | "warn"; readonly event: string }
  | { readonly kind: "end"; readonly end: RestoreEnd };
