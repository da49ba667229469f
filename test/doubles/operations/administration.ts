/**
 * Administrative calls in tests, made of real operations.
 */
import type { AnswerNamed, CallName, EndNamed, RequestNamed } from "../../../src/api/calls.js";
import type { OperationsPort, RequestContext } from "../../../src/operations/api/requests.js";

type Asked = Pick<OperationsPort, "administration">;

/** Makes a call, and hears its end whatever it is. */
export function call<N extends CallName>(
  asked: Asked,
  name: N,
  request: RequestNamed<N>,
  context: RequestContext,
  done: (end: EndNamed<N>) => void,
): void {
  asked.administration[name](request, context, done);
}

/** Makes a call; a refusal that is no answer throws. */
export function administer<N extends CallName>(
  asked: Asked,
  name: N,
  request: RequestNamed<N>,
  context: RequestContext,
  done: (answer: AnswerNamed<N>) => void,
): void {
  call(asked, name, request, context, (end) => {
    if ("refusal" in end) throw new Error(`${name} was refused`);
    done((end as { readonly answer: AnswerNamed<N> }).answer);
  });
}

/** What a node answers at once of what it has applied. */
export function view<N extends CallName>(
  asked: Asked,
  name: N,
  request: RequestNamed<N>,
): AnswerNamed<N> {
  const answers: AnswerNamed<N>[] = [];
  const context = { deadlineMs: 0, forwardHops: 0, requestId: "view" };
  administer(asked, name, request, context, (answer) => void answers.push(answer));
  if (answers.length !== 1) throw new Error(`${name} is answered at once`);
  return answers[0] as AnswerNamed<N>;
}
