/** Names of the files in the directory of a storage revision that more than one part knows. */

/** Written when the first log segment is durable: from then on a lost log is a loss. */
export const COMPLETE_MARK = "complete.json";
export const IDENTITY_NAME = "identity.json";
export const RESTORED_NAME = "restored.json";
export const FORCING_NAME = "forcing.json";
export const DIFFERED_NAME = "differed.json";
