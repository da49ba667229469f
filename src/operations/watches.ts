/**
 * Watches for the front ends: joins the host's hub with placement and other nodes, and names the
 * way to another node where a watch ends.
 *
 * Invariants: 1. Which partitions have what is watched is for the committed map to say, and the
 * same set stands for the same map. 2. Nothing about a change is decided here. 3. Each watch that
 * is asked for counts as a request of its caller (contract 10.9).
 */
import { META_PARTITION, type PartitionId, partitionId } from "../base/ids.js";
import { WatchKind } from "../base/result-types.js";
import { lockHashText, sequenceHashText } from "../base/routing.js";
import { Joints } from "../host/joint-watching/joints.js";
import type { JointPorts, PullResult } from "../host/joint-watching/parts.js";
import type { ToldParts } from "../host/joint-watching/told-parts.js";
import { WatchHub } from "../host/watching/hub.js";
import type { WatchRequest, WatchSink, WatchStream } from "../host/watching/messages.js";
import type { WatchPorts } from "../host/watching/watching.js";
import { trimWhiteSpace } from "../machine/store/names.js";
import type { CallerLimits } from "./admission/caller-limits.js";
import type { CallerName, WatchReceiver, Watches } from "./api/requests.js";
import type { CallResult } from "./forwarding/call.js";
import { NO_PARTITION } from "./forwarding/calls.js";
import type { Placement } from "./serving/placement.js";
import type { Serving } from "./serving/serving.js";
import type { CallAnswer, CallRequest } from "./wire/calls.js";

/** Time of a wish for a committed clock (ms). */
const WISH_MS = 2000;

export function watchHubOf(serving: Serving): WatchHub {
  const { settings } = serving;
  return new WatchHub(watchPorts(serving), {
    watchersMax: settings.watchMaxWatchers,
    historyBytes: settings.watchHistoryBytes,
    progressMs: settings.watchProgressMs,
  });
}

/** `told`: what this node tells of its own partitions. */
export function jointsOf(hub: WatchHub, told: ToldParts, serving: Serving): Joints {
  return new Joints(hub, jointPorts(hub, told, serving), serving.settings.watchProgressMs);
}

export function watchesOf(joints: Joints, serving: Serving, limits: CallerLimits): Watches {
  const { origins, ports } = serving;
  return {
    tally: joints.hub.tally,
    open(receiver: WatchReceiver, caller: CallerName | null): WatchStream {
      const sink: WatchSink = {
        deliver(message) {
          const { partition: id } = message;
          if (id === null) return receiver.deliver(message, null);
          const partition = partitionId(id);
          receiver.deliver(message, origins.elsewhere({ partition, generation: 0 }).route);
        },
        isFull: () => receiver.isFull(),
        mayRead: () => receiver.mayRead(),
      };
      const stream = joints.open(sink, () => {
        return caller === null || limits.admits({ caller }, ports.clock.monotonicMs());
      });
      return {
        create: (watchId, request) => stream.create(watchId, trimmed(request)),
        cancel: (watchId) => stream.cancel(watchId),
        sync: (syncId, watchId) => stream.sync(syncId, watchId),
        ready: () => stream.ready(),
        close: () => stream.close(),
      };
    },
  };
}

/** Sequences are named without white space around them (S1). */
function trimmed(request: WatchRequest): WatchRequest {
  if (request.kind !== WatchKind.sequence) return request;
  return { ...request, name: trimWhiteSpace(request.name) };
}

function watchPorts(serving: Serving): WatchPorts {
  const { node, ports, placement, calls, leaders } = serving;
  const partitions = new WatchedPartitions(placement, (text) => node.partitionOf(text));
  const ask = (
    partition: number,
    request: CallRequest,
    deadlineMs: number,
    done: (answer: CallAnswer | null) => void,
  ): void => {
    const to = leaders.of(partition);
    if (to === 0 || to === serving.settings.nodeId) return ports.timer.soon(() => done(null));
    calls.ask({ to, partition, request, requestId: "watch", deadlineMs }, (result) => {
      done(result.status === "answered" ? result.answer : null);
    });
  };
  return {
    clock: ports.clock,
    timer: ports.timer,
    group: (partition) => node.group(partitionId(partition)),
    groups: () => node.groups(),
    onGroup: (hook) => node.onGroup(hook),
    onGroupLeft: (hook) => node.onGroupLeft(hook),
    partitionsOf: (kind, name) => partitions.of(kind, name),
    ranges: () => placement.allRanges(),
    homeOf: (keySpace) => placement.hashHome(keySpace),
    hasMoved() {
      const cluster = node.metaGroup().machine.meta.cluster();
      // Whatever moves, a split came before it.
      return cluster !== null && cluster.nextPartitionId > cluster.dataPartitions + 1;
    },
    knowsCut(keySpace, moveId) {
      const { meta } = node.metaGroup().machine;
      // A move has the number of the map that it was begun on.
      if ((meta.cluster()?.mapVersion ?? -1) < moveId) return false;
      const move = meta.move(keySpace);
      return move?.moveId !== moveId || move.phase === "cut";
    },
    mapVersion: () => placement.mapVersion,
    clusterId: () => node.metaGroup().machine.meta.cluster()?.clusterId ?? "",
    isClosing: () => node.closing,
    confirmThere(partition, deadlineMs, done) {
      ask(partition, { kind: "confirm-index", partition }, deadlineMs, (answer) => {
        done(answer?.kind === "index-confirmed" ? answer.index : null);
      });
    },
    wishClock(partition, leaseMs, done) {
      const deadlineMs = ports.clock.monotonicMs() + WISH_MS;
      ask(partition, { kind: "clock-wish", partition, leaseMs }, deadlineMs, (answer) => {
        done(answer?.kind === "clock-wished");
      });
    },
  };
}

function jointPorts(hub: WatchHub, told: ToldParts, serving: Serving): JointPorts {
  const { ports, leaders, calls, settings } = serving;
  const { nodeId } = settings;
  const { partitionsOf, mapVersion, clusterId, isClosing, group } = hub.ports;
  return {
    ...{ clock: ports.clock, timer: ports.timer, nodeId },
    ...{ partitionsOf, mapVersion, clusterId, isClosing },
    isOn: () => ports.calls !== undefined && serving.knowsWaiting(),
    isHere: (partition) => group(partition) !== null,
    hostsOf(partition) {
      const nowMs = ports.clock.monotonicMs();
      return leaders.hosts(partition).filter((node) => calls.isReachable(node, nowMs));
    },
    pull(node, pull, deadlineMs, done) {
      if (node === nodeId) return told.pull("own", pull, done);
      const request = { kind: "watch-pull", ...pull } as const;
      const asking = { to: node, partition: NO_PARTITION, request, requestId: "watch", deadlineMs };
      calls.ask(asking, (result) => done(pulledOf(result)));
    },
  };
}

function pulledOf(result: CallResult): PullResult {
  if (result.status === "overloaded") return "lost";
  if (result.status !== "answered") return result.status;
  const { answer } = result;
  if (answer.kind === "watch-pulled") return answer;
  return answer.kind === "not-taken" && answer.unreadable ? "unreadable" : "lost";
}

/** Which partitions may have what is watched. */
class WatchedPartitions {
  private serving: ReadonlySet<number> = new Set();
  private servingVersion = -1;

  constructor(
    private readonly placement: Placement,
    private readonly partitionOf: (hashText: string) => PartitionId | null,
  ) {}

  of(kind: number, name: string): ReadonlySet<number> | null {
    const { placement } = this;
    switch (kind) {
      case WatchKind.key:
        return setOf(placement.keyRoute(name)?.partition ?? null);
      case WatchKind.lock:
        return setOf(this.partitionOf(lockHashText(name)));
      case WatchKind.sequence:
        return setOf(this.partitionOf(sequenceHashText(name)));
      case WatchKind.bucket: {
        const partitions = placement.bucketPartitions(name);
        return partitions === null ? null : new Set(partitions);
      }
      default:
        return this.all();
    }
  }

  private all(): ReadonlySet<number> | null {
    const version = this.placement.mapVersion;
    if (version !== this.servingVersion) {
      this.servingVersion = version;
      this.serving = new Set(this.placement.servingPartitions());
    }
    return this.serving.size === 0 ? null : this.serving;
  }
}

function setOf(partition: PartitionId | null): ReadonlySet<number> | null {
  return partition === null || partition === META_PARTITION ? null : new Set([partition]);
}
