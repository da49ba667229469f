/**
 * `--probe <url>`: one GET against a health path, for snapshots without another client.
 *
 * Invariants: 1. It ends within PROBE_MAX_MS. 2. It sends nothing but the request: so whose
 * certificate answers is not checked, as orchestrators do not either.
 */
import { get as getPlain } from "node:http";
import { get as getSecure } from "node:https";

const PROBE_MAX_MS = 2000;

/** Null when the answer was 2xx, else why not. */
export function probe(url: string): Promise<string | null> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(`no answer within ${PROBE_MAX_MS} ms`), PROBE_MAX_MS);
    const end = (failure: string | null): void => {
      clearTimeout(timer);
      resolve(failure);
    };
    if (!/^https?:\/\//.test(url) || !URL.canParse(url)) return end(`"${url}" is no http(s) URL`);
    const get = url.startsWith("https:") ? getSecure : getPlain;
    const request = get(url, { agent: false, rejectUnauthorized: false }, (response) => {
      const status = response.statusCode ?? 0;
      end(status >= 200 && status < 300 ? null : `HTTP ${status}`);
      request.destroy();
    });
    request.on("error", (error) => end(error.message));
  });
}
