/**
 * What can be done to one node of a model world, but for messages: its writes complete, its state
 * machine applies, it crashes, somebody wants something of it. Each says whether there was anything
 * to do.
 */
import { isJoint, isMember } from "../../../../src/raft/state/membership.js";
import type { ConfigChange } from "../../../../src/raft/state/types.js";
import { addsUnfit, possibleChanges } from "./events.js";
import { must } from "./history.js";
import type { ModelNode } from "./node.js";
import type { World } from "./world.js";

const leave: ConfigChange = { version: 2, transition: "auto", operations: [] };

export function complete(world: World, node: ModelNode): boolean {
  const record = node.writes.shift();
  if (record === undefined) return false;
  node.persist(record);
  if (record.snapshot !== null) {
    node.applied = record.snapshot;
    world.counts.snapshots++;
    world.history.belongs(node);
  }
  for (const message of record.messagesAfterWrite) {
    if (message.to === node.id) {
      if (message.kind === "voteAnswer") world.history.vote(node.id, message.term, node.id);
      node.core.step(message);
    } else {
      world.history.vouch(node, message);
      world.send(message);
    }
  }
  const { receipt } = record;
  if (receipt !== null) {
    if (receipt.term < node.core.term) world.counts.staleReceipts++;
    node.core.written(receipt);
    world.history.believes(node);
  }
  return true;
}

export function apply(world: World, node: ModelNode): boolean {
  const batch = node.batches.shift();
  if (batch === undefined) return false;
  const { core, log, disk } = node;
  for (let index = batch.first; index <= batch.last; index++) {
    const term = log.termOf(index) ?? 0;
    must(disk.termOf(index) === term, () => `${node.id} applies ${index} before it is written`);
    must(index === node.applied.index + 1, () => `${node.id} applies ${index} out of order`);
    must(
      world.history.truth[index - 1] === term,
      () => `${node.id} applies ${term}/${index}, which is not what was committed`,
    );
    let { membership } = node.applied;
    if (core.kindAt(index) !== "normal") {
      const change = world.changes.get(`${term}/${index}`) ?? leave;
      const led = core.role === "leader";
      membership = core.applyConfigChange(index, change);
      world.counts.changesApplied++;
      if (isJoint(membership)) world.counts.jointEntered++;
      if (led && core.role !== "leader") world.counts.stepDownsOnRemoval++;
      world.watch(node);
    }
    node.applied = { index, term, membership };
    if (world.settings.offersSnapshots) core.snapshotAvailable(node.applied);
  }
  core.applied(batch.last);
  world.history.belongs(node);
  return true;
}

export function crash(world: World, node: ModelNode, kept: number): boolean {
  world.counts.crashes++;
  if (node.writes.length > kept) world.counts.lostWrites++;
  node.crash(world.library, world.configOf(node.id), kept);
  world.history.restarted(node);
  return true;
}

/**
 * Only of a replica that has left for good: the newest configuration is without it, and no log has
 * a change that names it behind that.
 */
export function renew(world: World, node: ModelNode): boolean {
  const newest = world.nodes.reduce((best, other) => {
    return other.applied.index > best.applied.index ? other : best;
  }).applied;
  if (isMember(newest.membership, node.id) || node.core.term === 0) return false;
  const isNamed = world.nodes.some(({ log }) => {
    return log.changes.some((index) => {
      const change = world.changes.get(`${log.termOf(index)}/${index}`);
      return index > newest.index && change?.operations.some((one) => one.node === node.id);
    });
  });
  if (isNamed) return false;
  world.counts.renewals++;
  node.renew(world.library, world.configOf(node.id));
  world.history.restarted(node);
  return true;
}

export function change(world: World, node: ModelNode, at: number): boolean {
  const { core } = node;
  const { gentleChanges } = world.settings;
  if (core.role !== "leader") return false;
  const possible = possibleChanges(core.membership, world.ids, gentleChanges).filter((change) => {
    return !addsUnfit(change, (id) => !world.node(id).awaitsSnapshot);
  });
  const change = possible[at % possible.length];
  if (change === undefined) return false;
  const result = core.proposeConfigChange(change, 2);
  if (!result.ok || result.kind !== "appended" || result.replacedByEmpty) return result.ok;
  world.changes.set(`${result.term}/${result.firstIndex}`, change);
  return true;
}

export function read(world: World, node: ModelNode): boolean {
  world.lastContext++;
  const result = node.core.requestRead(world.lastContext);
  if (result !== "accepted" && result !== "forwarded") return false;
  world.counts.readsAsked++;
  world.history.reads.set(world.lastContext, world.history.truth.length);
  return true;
}

export function compact(world: World, node: ModelNode, behind: number): boolean {
  const { core, disk, applied } = node;
  const floor = applied.index - behind;
  if (floor <= disk.floor || node.writes.some((write) => write.snapshot !== null)) return false;
  node.snapshot = applied;
  node.log.compact(floor);
  disk.compact(floor);
  core.compacted(floor);
  world.counts.compactions++;
  return true;
}

export function report(world: World, node: ModelNode, at: number): boolean {
  const about = Math.abs(at);
  const found = world.reports.findIndex((report) => {
    return report.node === node.id && report.about === about && report.ok === at > 0;
  });
  if (found < 0) return false;
  world.reports.splice(found, 1);
  node.core.reportSnapshot(about, at > 0);
  return true;
}
