/**
 * The backup and restore calls of a node.
 *
 * Invariants: 1. A malformed id, target or skip has no outcome and comes first; then what is not
 * configured; then the turn. 2. Every call ends in its answer or in an outcome of contract 7.6,
 * with the operation under which its cause is logged; nothing is reported as done that was not. 3.
 * Backups, restores and collections are one after the other on a node; the others wait for nobody.
 * 4. A pass of the collection follows each backup, after its answer.
 */
import type { BACKUP_CALLS, BackupRefusal } from "../../api/backups.js";
import type { EndNamed, RequestNamed, Unadmitted } from "../../api/calls.js";
import { readCatalogue, readChain } from "../../backup/catalogue.js";
import { uuidOf } from "../../backup/names.js";
import { validateChain } from "../../backup/validate.js";
import type { ArchivePort } from "../../ports.js";
import type { Administration } from "../api/administration.js";
import type {
  BackupProgress as TakingProgress,
  BackupRequest,
  BackupTaking,
  TakenBackup,
  TakingFault,
} from "../../host/backups/backup-taking.js";
import type { BackupEvent, BackupWorld, FailedOutcome } from "../api/backup-world.js";
import type { RequestContext } from "../api/context.js";
import type { Serving } from "../serving/serving.js";
import { chainFault, chainId, parentFault, parentId, restoreFault } from "./arguments.js";
import { Collecting, collectionAnswer } from "./collecting.js";
import { chainInfos, entryInfo, restoredAnswer, takenInfo } from "./infos.js";
import { leased } from "./leased.js";
import { type Course, Runs } from "./runs.js";

type BackupCall = keyof typeof BACKUP_CALLS;
type Done<N extends BackupCall> = (end: EndNamed<N>) => void;
type Refuse = (end: Unadmitted | { readonly refusal: BackupRefusal }) => void;
type Fault = { readonly code: FailedOutcome; readonly message: string };

/** Who leads the meta partition, for whoever asked somebody else for a coordinated backup. */
function toldLeader({ leader }: TakingFault): string {
  if (leader === null) return "";
  const { nodeId, endpoint, clientEndpoint } = leader;
  const known = [endpoint, clientEndpoint].filter((text) => text !== "");
  return ` Ask node ${nodeId}${known.length === 0 ? "" : ` (${known.join(", ")})`}.`;
}

const NO_DIRECTORY = "No backup directory is configured.";
const NO_ROOT = "No restore root is configured.";

export class Backups {
  private readonly world: BackupWorld | null;
  private readonly runs: Runs;
  private readonly collecting: Collecting | null;
  readonly calls: Pick<Administration, BackupCall>;

  constructor(private readonly serving: Serving) {
    const { backups = null } = serving.ports;
    this.world = backups;
    this.runs = new Runs(serving.ports);
    this.collecting = backups === null ? null : new Collecting(serving, backups, this.runs);
    this.calls = {
      "backups.full": (_request, context, done) => this.take({ kind: "full" }, context, done),
      "backups.coordinated": (_request, context, done) =>
        this.take({ kind: "coordinated" }, context, done),
      "backups.incremental": (request, context, done) => {
        const fault = parentFault(request);
        if (fault !== null) return this.malformed("incremental", fault, done);
        this.take({ kind: "incremental", parentId: parentId(request) }, context, done);
      },
      "backups.list": (_request, context, done) => this.list(context, done),
      "backups.running": (_request, _context, done) => {
        this.soon(() => done({ answer: this.runs.answer() }));
      },
      "backups.chain": (request, context, done) => this.chain(request, context, done),
      "backups.validateChain": (request, context, done) => this.validate(request, context, done),
      "backups.collectGarbage": (request, context, done) => this.collect(request, context, done),
      "backups.restore": (request, context, done) => this.restore(request, context, done),
    };
  }

  /** The node stops: what runs ends, and nothing begins any more. */
  stop(): void {
    this.collecting?.stop();
    this.runs.stop();
  }

  private soon(callback: () => void): void {
    this.serving.ports.timer.soon(callback);
  }

  private operationId(): string {
    return this.runs.operationId();
  }

  /** Ends a call that failed, and logs why. */
  private failed(kind: string, operation: string, fault: Fault, done: Refuse): void {
    const { code: outcome, message } = fault;
    const { logger } = this.serving.ports;
    const level = outcome === "IoError" || outcome.startsWith("Corrupt") ? "warn" : "info";
    logger.log(level, "backup call failed", { operation, kind, outcome, cause: message });
    done({ refusal: { outcome, message: `${message} (operation ${operation})` } });
  }

  private malformed(kind: string, fault: string, done: Refuse): void {
    const operation = this.operationId();
    this.serving.ports.logger.log("info", "backup call refused", { operation, kind, cause: fault });
    const message = `${fault} (operation ${operation})`;
    this.soon(() => done({ refusal: { outcome: null, message } }));
  }

  private notConfigured(kind: string, message: string, done: Refuse): void {
    const fault = { code: "NotConfigured", message } as const;
    this.soon(() => this.failed(kind, this.operationId(), fault, done));
  }

  /** The directory; null when there is none, and the call is answered. */
  private archive(kind: string, done: Refuse): ArchivePort | null {
    const archive = this.world?.archive ?? null;
    if (archive === null) this.notConfigured(kind, NO_DIRECTORY, done);
    return archive;
  }

  /** Begins an operation when its turn has come. */
  private inTurn(
    kind: BackupEvent["kind"],
    context: RequestContext,
    done: Refuse,
    begin: (course: Course) => void,
  ): void {
    if (this.runs.isStopping) return this.soon(() => done({ refused: "shutting-down" }));
    this.runs.inTurn(kind, this.operationId(), context, (course) => {
      if (course !== null) return begin(course);
      done({ refused: this.runs.isStopping ? "shutting-down" : "overloaded" });
    });
  }

  private tell(event: Omit<BackupEvent, "wasAsked">, course: Course): void {
    const { kind, outcome, fields } = event;
    const { operation } = course;
    this.world?.witness.ended({ ...event, wasAsked: true, fields: { operation, ...fields } });
    if (outcome !== "Ok") return;
    this.serving.ports.logger.log("info", "backup operation ended", { operation, kind, ...fields });
  }

  private take(request: BackupRequest, context: RequestContext, done: Done<"backups.full">): void {
    const { kind } = request;
    if (this.archive(kind, done) === null) return;
    const taking = this.world?.taking ?? null;
    if (taking === null) return this.notConfigured(kind, "This node takes no backups.", done);
    // Whoever takes it holds the lease, on its parent too.
    this.inTurn(kind, context, done, (course) => this.carryOut(taking, request, course, done));
  }

  private carryOut(
    taking: BackupTaking,
    request: BackupRequest,
    course: Course,
    done: Done<"backups.full">,
  ): void {
    const { kind } = request;
    const { operation } = course;
    const progress = ({ partitions, bytes, ...told }: TakingProgress): void =>
      course.progress({ ...told, partitionsTotal: partitions, bytesDone: bytes, bytesTotal: 0 });
    const ended = (result: TakenBackup | TakingFault): void => {
      course.end();
      if (!result.ok) {
        this.tell({ kind, outcome: result.code, fields: {} }, course);
        const message = `${result.message}${toldLeader(result)}`;
        return this.failed(kind, operation, { code: result.code, message }, done);
      }
      const { manifest, substitutionReason } = result;
      const fields = {
        backup: uuidOf(manifest.backupId),
        substitution: substitutionReason ?? "",
      };
      this.tell({ kind, outcome: "Ok", fields }, course);
      done({ answer: takenInfo(result) });
      this.collecting?.follow();
    };
    const run = taking.take(request, progress, ended);
    course.onCancel(() => run.cancel());
  }

  private restore(
    request: RequestNamed<"backups.restore">,
    context: RequestContext,
    done: Done<"backups.restore">,
  ): void {
    const fault = restoreFault(request);
    if (fault !== null) return this.malformed("restore", fault, done);
    const restoring = this.world?.restoring ?? null;
    if (restoring === null) return this.notConfigured("restore", NO_ROOT, done);
    const archive = this.archive("restore", done);
    if (archive === null) return;
    const { targetDir, targetTimeMs, sequenceSkip } = request;
    const leafId = chainId(request);
    // Beyond 2^53 no stamp is; what is later than everything is outside of the coverage.
    const atMs = Math.min(Number(targetTimeMs), Number.MAX_SAFE_INTEGER);
    const order = { leafId, targetDir, targetTimeMs: atMs, sequenceSkip };
    const kind = "restore";
    this.inTurn(kind, context, done, (course) => {
      const { operation } = course;
      const progress = course.progress.bind(course);
      leased(this.serving, { archive, operation, kind, backups: [leafId] }, (release) => {
        const run = restoring.restore(order, operation, progress, (result) => {
          release(() => {
            course.end();
            const fields = { leaf: uuidOf(leafId), target: targetDir };
            this.tell({ kind, outcome: result.ok ? "Ok" : result.code, fields }, course);
            if (result.ok) done({ answer: restoredAnswer(result.value) });
            else this.failed(kind, operation, result, done);
          });
        });
        course.onCancel(() => run.cancel());
      });
    });
  }

  private collect(
    { dryRun }: RequestNamed<"backups.collectGarbage">,
    context: RequestContext,
    done: Done<"backups.collectGarbage">,
  ): void {
    if (this.archive("gc", done) === null || this.collecting === null) return;
    const { collecting } = this;
    this.inTurn("gc", context, done, (course) => {
      collecting.pass(course, dryRun, true, (result) => {
        course.end();
        if (result.ok) return done({ answer: collectionAnswer(result.value) });
        if (result.code === "busy") return done({ refused: "overloaded" });
        this.failed("gc", course.operation, { code: result.code, message: result.message }, done);
      });
    });
  }

  private list(context: RequestContext, done: Done<"backups.list">): void {
    const archive = this.archive("list", done);
    if (archive === null || this.world === null) return;
    const { signatures, witness } = this.world;
    const course = this.runs.beside("list", this.operationId(), context);
    readCatalogue(archive, signatures, (read) => {
      course.end();
      if (!read.ok) return this.failed("list", course.operation, read, done);
      const { entries } = read.value;
      witness.catalogueSeen(entries.filter(({ fault }) => fault !== null).length);
      done({ answer: entries.map(entryInfo) });
    });
  }

  private chain(
    request: RequestNamed<"backups.chain">,
    context: RequestContext,
    done: Done<"backups.chain">,
  ): void {
    const fault = chainFault(request);
    if (fault !== null) return this.malformed("chain", fault, done);
    const archive = this.archive("chain", done);
    if (archive === null || this.world === null) return;
    const course = this.runs.beside("chain", this.operationId(), context);
    readChain(archive, this.world.signatures, chainId(request), (read) => {
      course.end();
      if (!read.ok) return this.failed("chain", course.operation, read, done);
      this.noteUnchecked(read.value.isUnchecked, course.operation);
      done({ answer: chainInfos(read.value.chain) });
    });
  }

  private noteUnchecked(isUnchecked: boolean, operation: string): void {
    if (!isUnchecked) return;
    const text = "a backup is signed, and its signature was not checked: no key is configured";
    this.serving.ports.logger.log("warn", text, { operation });
  }

  private validate(
    request: RequestNamed<"backups.validateChain">,
    context: RequestContext,
    done: Done<"backups.validateChain">,
  ): void {
    const fault = chainFault(request);
    if (fault !== null) return this.malformed("validate-chain", fault, done);
    const archive = this.archive("validate-chain", done);
    if (archive === null || this.world === null) return;
    const { signatures } = this.world;
    const kind = "validate-chain";
    const course = this.runs.beside(kind, this.operationId(), context);
    const { operation } = course;
    const leafId = chainId(request);
    leased(this.serving, { archive, operation, kind, backups: [leafId] }, (release) => {
      const options = { isCancelled: () => course.isCancelled() };
      validateChain(archive, signatures, leafId, options, (verified) => {
        release(() => {
          course.end();
          if (!verified.ok) return this.failed(kind, operation, verified, done);
          this.noteUnchecked(verified.value.isUnchecked, operation);
          done({ answer: chainInfos(verified.value.chain) });
        });
      });
    });
  }
}
