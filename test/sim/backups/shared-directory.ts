/**
 * A directory in the world that several machines reach: of backups, or one below which is restored.
 *
 * Calls take their time and may fail, hang, or find no space; what one machine did and nobody synced
 * goes with its power. Invariants: 1. Nothing is answered to a life that is over; what it asked for
 * last may happen all the same. 2. All draws come from the directory's own generator.
 */
import { assert } from "../../../src/base/assert.js";
import type { Prng } from "../../../src/base/prng.js";
import { failure } from "../../../src/base/result.js";
import type { ArchiveResult } from "../../../src/ports.js";
import {
  type ArchiveCall,
  FalseArchive,
  FalseArchiveDisk,
} from "../../doubles/backup/false-archive.js";
import { type Life, WALL_START_MS } from "../world/process.js";
import type { World } from "../world/world.js";

/** Calls that change something. */
const CHANGES: ReadonlySet<ArchiveCall> = new Set<ArchiveCall>([
  ...(["create", "write", "finish", "touch", "makeDirectory"] as const),
  ...(["rename", "syncDirectory", "remove", "removeTree"] as const),
]);

/** Told of every change that was made, right after it. */
export type DirectoryWatcher = (call: ArchiveCall, path: string, node: number) => void;

export class SharedDirectory extends FalseArchiveDisk {
  readonly prng: Prng;
  /** Of a thousand calls, those that fail. */
  failPerMille = 0;
  /** Nothing answers before this time. */
  hungUntilMs = 0;
  watch: DirectoryWatcher = () => undefined;
  readonly counts = { calls: 0, failed: 0, afterDeath: 0, powerLosses: 0 };

  constructor(
    readonly world: World,
    readonly name: string,
    private readonly callMs: number,
  ) {
    super((callback) => void world.schedule(0, callback), WALL_START_MS);
    this.prng = world.prng(`directory ${name}`);
  }

  delayMs(): number {
    const { prng, world, callMs } = this;
    const delayMs = callMs * (0.5 + prng.below(1024) / 1024);
    return Math.max(delayMs, this.hungUntilMs - world.nowMs + delayMs);
  }

  tick(): void {
    this.nowMs = WALL_START_MS + Math.floor(this.world.nowMs);
  }

  /** The power of a machine is gone. */
  powerLost(node: number): void {
    this.counts.powerLosses++;
    this.crash(authorOf(node), this.prng);
  }
}

export function authorOf(node: number): string {
  return `node ${node}`;
}

/** The way of one life to it. */
export class DirectoryPort extends FalseArchive {
  constructor(
    private readonly shared: SharedDirectory,
    private readonly life: Life,
  ) {
    super(shared, authorOf(life.node));
  }

  override call<T>(
    call: ArchiveCall,
    path: string,
    done: (result: ArchiveResult<T>) => void,
    make: () => ArchiveResult<T>,
  ): void {
    const { shared: directory, life } = this;
    const { world } = directory;
    const names = path === "" ? [] : path.split("/");
    const isPlain = names.every((name) => name !== "" && name !== "." && name !== "..");
    assert(isPlain, "a path below the root is made of plain names");
    life.touch("archive");
    world.schedule(directory.delayMs(), () => {
      directory.tick();
      if (life.isOver) {
        // The other end had it already, and nobody hears of it.
        if (!directory.prng.chance(1, 2)) return;
        directory.counts.afterDeath++;
        if (make().ok && CHANGES.has(call)) directory.watch(call, path, life.node);
        return;
      }
      directory.counts.calls++;
      const isFailing = directory.prng.below(1000) < directory.failPerMille;
      if (isFailing) directory.counts.failed++;
      const result = isFailing ? failure("failed", `cannot ${call} "${path}"`) : make();
      if (world.trace.hasWords && CHANGES.has(call)) {
        const end = result.ok ? "" : ` fails: ${result.code}`;
        world.say(life.node, `${directory.name}: ${call} ${path}${end}`);
      }
      world.trace.mix(call.length + path.length);
      if (result.ok && CHANGES.has(call)) directory.watch(call, path, life.node);
      life.enter(() => done(result as ArchiveResult<T>));
    });
  }
}
