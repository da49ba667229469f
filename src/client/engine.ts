/**
 * Signature of the engine; its parts follow.
 */
import type { Calling, Caller, Operation } from "./operation.js";
import type { ClientSettings, MonotonicClock } from "./options.js";

export class Engine implements Caller {
  constructor(_settings: ClientSettings, _clock: MonotonicClock) {
    void _settings;
    void _clock;
  }
  call<Request, Answer, Result>(
    _operation: Operation<Request, Answer, Result>,
    _request: Request,
    _calling?: Calling,
  ): Promise<Result> {
    return Promise.reject(new Error("the engine is not here yet"));
  }
  close(): void {
    return undefined;
  }
}
