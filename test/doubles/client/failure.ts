/** How a call of the client failed; a test whose call does not fail, or in another way, fails. */
import { SvcError } from "../../../src/client/mod.js";

export async function failure(promise: Promise<unknown>): Promise<SvcError> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof SvcError) return error;
    throw error;
  }
  throw new Error("the call did not fail");
}
