/**
 * One call as its handler sees it, whatever carries it: messages in, messages out, an end.
 *
 * Invariants: 1. A call ends once: with OK, with a failure, or because it is gone. 2. After its end
 * nothing reaches its handler but the news that it is gone. 3. What could not leave at once is told
 * when it left, never in the turn of the sending.
 */
import type { Role } from "./access.js";
import { Status } from "./constants.js";
import { type Failure, failureOf } from "./failure.js";
import type { RequestHead } from "./fields.js";
import { Intake, type IntakeSink } from "./intake.js";

/** Who calls, as the gate found out. */
export interface CallerOf {
  readonly role: Role;
  readonly name: string;
  readonly address: string;
  /** For limits: its name, or, where nobody has to show one, its address. */
  readonly limited: {
    readonly name: string;
    readonly actor?: string;
    readonly rate: number | null;
  };
}

/** What takes what a call has to say. */
export interface CallHandler {
  /** A request message. The bytes stay as they are. */
  message(bytes: Buffer): void;
  /** The client has said its last word. */
  halfClosed(): void;
  /** So many bytes left that could not leave when they were sent. */
  taken(sizeBytes: number): void;
  /** The call is gone: it ended, was cancelled or cut. Nothing follows. */
  gone(): void;
}

/** What a path leads to. */
export interface Route {
  readonly path: string;
  /** null: nobody needs a role. */
  readonly role: Role | null;
  /** Longest duration of a call (ms); null for streams, which may live long. */
  readonly boundMs: number | null;
  /**
   * Its handler ends the call in good order when the front end closes, although the client has not
   * said its last word. Other calls whose request never came to its end are not waited for.
   */
  readonly drains: boolean;
  /** Takes the one request message of a call; null where there may be several. */
  readonly serve: ((call: Call, bytes: Buffer) => void) | null;
  /** Takes a call that may have several request messages; null where there is one. */
  readonly open: ((call: Call) => CallHandler) | null;
}

/** What is asked of the owner of a connection about its calls. */
export interface CallDesk {
  readonly messageMaxBytes: number;
  nowMs(): number;
  route(path: string): Route | null;
  /** Judges who calls; a failure: the call is refused. `socket`: the connection. */
  gate(route: Route, head: RequestHead, socket: unknown, address: string): CallerOf | Failure;
  /** A call begins. */
  begun(route: Route): void;
  /** Whether who called may still do so: credentials can be taken back while a call is open. */
  stillAllows(route: Route, head: RequestHead, socket: unknown): boolean;
  /** A call that had begun is gone, with a status of gRPC. */
  ended(route: Route, code: number): void;
  /** A call was refused before it began; null: its path leads nowhere. */
  refused(route: Route | null, code: number): void;
}

/** For responses whose head says nothing but that it is one. */
export const NOTHING_SPOKEN: readonly string[] = [];

const NO_HANDLER: CallHandler = {
  message: () => undefined,
  halfClosed: () => undefined,
  taken: () => undefined,
  gone: () => undefined,
};

export abstract class Call {
  /** When it is given up, on the monotonic clock (ms); Infinity = never. */
  readonly deadlineMs: number;
  /** False from its end on. */
  isOpen = true;
  protected handler = NO_HANDLER;
  protected readonly intake: Intake;
  /** The request is at its end. */
  protected hasEnded = false;
  /** The status that was sent. */
  protected code: number = Status.CANCELLED;
  private first: Buffer | null = null;
  private leavers: (() => void)[] | null = null;
  private isGone = false;

  constructor(
    readonly head: RequestHead,
    readonly route: Route,
    readonly caller: CallerOf,
    /** Address of the peer: names the connection. */
    readonly peer: string,
    private readonly desk: CallDesk,
  ) {
    const boundMs = route.boundMs ?? Infinity;
    this.deadlineMs = desk.nowMs() + (head.timeoutMs < boundMs ? head.timeoutMs : boundMs);
    this.intake = new Intake(this.sinkOf(), desk.messageMaxBytes);
  }

  /** Lets the handler of its route begin. */
  begin(): void {
    const { open } = this.route;
    this.desk.begun(this.route);
    if (open !== null) this.handler = open(this);
  }

  /** From now on `handler` is told of what happens: for those that serve one message. */
  tell(handler: CallHandler): void {
    this.handler = handler;
  }

  private sinkOf(): IntakeSink {
    const { encoding } = this.head;
    const broken = (failure: Failure): void => this.fail(failure);
    const moved = (): void => this.moved();
    if (this.route.serve === null) {
      return {
        encoding,
        message: (bytes) => {
          if (this.isOpen) this.handler.message(bytes);
        },
        halfClosed: () => {
          if (this.isOpen) this.handler.halfClosed();
        },
        broken,
        moved,
      };
    }
    return {
      encoding,
      message: (bytes) => {
        if (this.first === null) this.first = bytes;
        else this.fail(failureOf(Status.UNIMPLEMENTED, "the call takes one message, not several"));
      },
      halfClosed: () => this.serveFirst(),
      broken,
      moved,
    };
  }

  private serveFirst(): void {
    const { first } = this;
    if (!this.isOpen) return;
    if (first !== null) this.route.serve?.(this, first);
    else this.fail(failureOf(Status.UNIMPLEMENTED, "the call takes a message, and there is none"));
  }

  /** The connection that it came on. */
  protected abstract get socket(): unknown;

  /** Whether who called may still do so. */
  get isStillAllowed(): boolean {
    return this.desk.stillAllows(this.route, this.head, this.socket);
  }

  /** Its connection is gone, and not the call alone. */
  abstract get isLost(): boolean;

  /** Calls back when the call is gone; at once when it is. */
  whenGone(done: () => void): void {
    if (this.isGone) done();
    else (this.leavers ??= []).push(done);
  }

  /** For the carrier: it is gone. */
  protected leave(): void {
    if (this.isGone) return;
    this.isGone = true;
    this.isOpen = false;
    this.intake.close();
    this.desk.ended(this.route, this.code);
    this.handler.gone();
    if (this.leavers !== null) for (const done of this.leavers) done();
  }

  /** Until `resume` no message is handed out, and the client may send little more. */
  abstract pause(): void;
  abstract resume(): void;
  /** The head of the response, before the first message; each of `spoken` is a field of value 1. */
  abstract respond(spoken: readonly string[]): void;
  /**
   * Sends a message; the bytes may be used again. True: it left. False: `taken` tells of its bytes
   * later.
   */
  abstract send(message: Uint8Array): boolean;
  /** The one message of the response, and OK. */
  abstract answer(message: Uint8Array): void;
  /** OK, after all that was sent. */
  abstract end(): void;
  abstract fail(failure: Failure): void;
  /** Resets it. */
  abstract cut(): void;
  /** Its time is over: what waits to be sent is not waited for. */
  abstract expire(failure: Failure): void;
  /** After something kept was handed out by itself. */
  protected abstract moved(): void;
  /** Says that the call was never begun, if it has not come whole. */
  abstract refuseHalfSent(failure: Failure): void;
}
