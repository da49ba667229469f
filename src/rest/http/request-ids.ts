/**
 * Request ids: the client's own where it sent an acceptable one, else one that is unique on this
 * node.
 *
 * Invariants: 1. An id is 1 to 128 visible ASCII characters, so it can go into a header and a log
 * line as it is.
 */
import { randomBytes } from "node:crypto";
import { REQUEST_ID_MAX_CHARACTERS } from "../../base/limits.js";

const VISIBLE = /^[\x21-\x7e]+$/;

export class RequestIds {
  private readonly prefix = randomBytes(6).toString("hex");
  private count = 0;

  /** `sent`: value of the header X-Request-Id. */
  of(sent: string | string[] | undefined): string {
    if (
      typeof sent === "string" &&
      sent.length <= REQUEST_ID_MAX_CHARACTERS &&
      VISIBLE.test(sent)
    ) {
      return sent;
    }
    this.count++;
    return `${this.prefix}-${this.count.toString(36)}`;
  }
}
