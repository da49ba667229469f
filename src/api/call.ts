/**
 * What one administrative call is: its place on each wire, what it asks and answers, who may make
 * it, how it ends, and when a client may repeat it.
 *
 * Plain data. Invariants: 1. An end is an answer of the call itself, also when it says no; only
 * calls with `refusals` end in something else. 2. What can be told from the answer is not said a
 * second time: the code of a problem follows from its status.
 */
import type { Asking, GivenOf, Message, ReadOf, RequestOf } from "./members.js";

/** A request that can be told to be wrong before anything is asked, in the words of each wire. */
export interface Mistake {
  readonly rest: string;
  readonly grpc: string;
}

export interface Call<Q extends Asking = Asking, A extends Message = Message> {
  readonly access: "reader" | "admin";
  /** "/Service/Rpc". */
  readonly grpc: string;
  readonly rest: {
    readonly method: "GET" | "POST";
    readonly path: string;
    readonly summary: string;
    /** No body at all says as much as `{}`. */
    readonly bodyOptional?: true;
    /** Statuses besides 200 and 400, for the document. */
    readonly statuses: readonly number[];
  };
  readonly request: Q;
  readonly answer: A;
  /** HTTP status of an answer; omitted = always 200. Other than 200, the answer has a `reason`. */
  status?(answer: GivenOf<A>): 200 | ProblemStatus;
  mistake?(request: RequestOf<Q>): Mistake | null;
  /** Which bound its handling time has. */
  readonly bound: "admin" | "leave" | "backup";
  /** True when the call may end in a refusal that is no answer, with an outcome of its own. */
  readonly refusals: boolean;
  /** It changes nothing: a client that got no answer knows that nothing happened. */
  readonly reads: boolean;
  /** May a client repeat a try whose outcome is unknown? */
  repeat(request: RequestOf<Q>): boolean;
}

/** Statuses of answers that say no. */
export type ProblemStatus = 400 | 409 | 503 | 504;

/** As most calls are. */
const USUAL = { bound: "admin", refusals: false, reads: false, repeat: () => true } as const;

type Usual = keyof typeof USUAL;
type Spec<Q extends Asking, A extends Message> = Omit<Call<Q, A>, Usual> &
  Partial<Pick<Call<Q, A>, Usual>>;

export function call<Q extends Asking, A extends Message>(spec: Spec<Q, A>): Call<Q, A> {
  return { ...USUAL, ...spec };
}

export type RequestOfCall<C> = C extends Call<infer Q, Message> ? RequestOf<Q> : never;
export type AnswerOfCall<C> = C extends Call<Asking, infer A> ? GivenOf<A> : never;
export type ResultOfCall<C> = C extends Call<Asking, infer A> ? ReadOf<A> : never;
