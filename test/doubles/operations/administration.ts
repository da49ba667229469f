/**
 * Administrative calls in tests: made of real operations, and answered by an operations double.
 *
 * Invariants: 1. A double that is asked what its test did not expect throws.
 */
import type { BackupRefusal } from "../../../src/api/backups.js";
import type { AnswerNamed, CallName, EndNamed, RequestNamed } from "../../../src/api/calls.js";
import type { Administration } from "../../../src/operations/api/administration.js";
import type { OperationsPort, RequestContext } from "../../../src/operations/api/requests.js";

type Asked = Pick<OperationsPort, "administration">;

function call<N extends CallName>(
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

/** A backup call as a value. */
export type BackupRequest =
  | { readonly kind: "full" | "coordinated" | "list" }
  | { readonly kind: "incremental"; readonly parentBackupId: string }
  | { readonly kind: "chain" | "validate-chain"; readonly leafBackupId: string }
  | { readonly kind: "gc"; readonly dryRun: boolean }
  | {
      readonly kind: "restore";
      readonly leafBackupId: string;
      readonly targetDir: string;
      readonly targetTimeMs: bigint;
    };
const BACKUP_NAMES = {
  full: "backups.full",
  coordinated: "backups.coordinated",
  list: "backups.list",
  incremental: "backups.incremental",
  chain: "backups.chain",
  "validate-chain": "backups.validateChain",
  gc: "backups.collectGarbage",
  restore: "backups.restore",
} as const;

type Refused = (end: { readonly refusal: BackupRefusal }) => void;
type BackupCall = (request: object, context: RequestContext, done: Refused) => void;

/** Makes a backup call, which this version refuses. */
export function backUp(
  { administration }: Asked,
  { kind, ...request }: BackupRequest,
  context: RequestContext,
  done: (refusal: BackupRefusal) => void,
): void {
  const begin = administration[BACKUP_NAMES[kind]] as BackupCall;
  begin(request, context, ({ refusal }) => done(refusal));
}

/** Every backup call goes to `take`, which refuses it. */
export function backupsRefusedBy(
  take: (
    request: BackupRequest,
    context: RequestContext,
    done: (refusal: BackupRefusal) => void,
  ) => void,
): Partial<Administration> {
  const rows = Object.entries(BACKUP_NAMES).map(([kind, name]): [string, BackupCall] => [
    name,
    (request, context, done) =>
      take({ kind, ...request } as BackupRequest, context, (refusal) => done({ refusal })),
  ]);
  return Object.fromEntries(rows) as Partial<Administration>;
}

/** The calls of a double: those that its tests make. */
export function answering(rows: Partial<Administration>): Administration {
  return new Proxy(rows, {
    get(known, name): unknown {
      const row: unknown = Reflect.get(known, name);
      if (row === undefined) throw new Error(`the test did not expect ${String(name)}`);
      return row;
    },
  }) as Administration;
}

type Answered<N extends CallName> = (
  request: RequestNamed<N>,
  context: RequestContext,
  done: (answer: AnswerNamed<N>) => void,
) => void;

/** The calls of a double of a front end, as methods. */
export interface DoubleCalls {
  membership(): AnswerNamed<"cluster.membership">;
  placement(): AnswerNamed<"cluster.placement">;
  routing(keySpace: string): AnswerNamed<"cluster.routing">;
  readonly leave: Answered<"cluster.leave">;
  readonly setReplicationFactor: Answered<"cluster.setReplicationFactor">;
  ranges(keySpace: string): AnswerNamed<"ranges.list">;
  registerRange(
    keySpace: string,
    context: RequestContext,
    done: (answer: AnswerNamed<"ranges.register">) => void,
  ): void;
  unregisterRange(
    keySpace: string,
    context: RequestContext,
    done: (answer: AnswerNamed<"ranges.unregister">) => void,
  ): void;
  readonly splitRange: Answered<"ranges.split">;
  mergeRanges(context: RequestContext, done: (answer: AnswerNamed<"ranges.merge">) => void): void;
  backup(
    request: BackupRequest,
    context: RequestContext,
    done: (answer: BackupRefusal) => void,
  ): void;
}

/** The administration of a double, whose methods say what is answered. */
export function administrationOf(calls: DoubleCalls): Administration {
  return answering({
    "cluster.membership": (_request, _context, done) => done({ answer: calls.membership() }),
    "cluster.placement": (_request, _context, done) => done({ answer: calls.placement() }),
    "cluster.routing": ({ keySpace }, _context, done) => done({ answer: calls.routing(keySpace) }),
    "cluster.leave": (request, context, done) =>
      calls.leave(request, context, (answer) => done({ answer })),
    "cluster.setReplicationFactor": (request, context, done) =>
      calls.setReplicationFactor(request, context, (answer) => done({ answer })),
    "ranges.list": ({ keySpace }, _context, done) => done({ answer: calls.ranges(keySpace) }),
    "ranges.register": ({ keySpace }, context, done) =>
      calls.registerRange(keySpace, context, (answer) => done({ answer })),
    "ranges.unregister": ({ keySpace }, context, done) =>
      calls.unregisterRange(keySpace, context, (answer) => done({ answer })),
    "ranges.split": (request, context, done) =>
      calls.splitRange(request, context, (answer) => done({ answer })),
    "ranges.merge": (_request, context, done) =>
      calls.mergeRanges(context, (answer) => done({ answer })),
    ...backupsRefusedBy((request, context, done) => calls.backup(request, context, done)),
  });
}
