/**
 * Brings the cluster's own records into being and keeps this node's line in them true: founds the
 * cluster on a new data directory, and rewrites this node's endpoint when it was started under
 * another one.
 *
 * May call: base, machine, ports, this folder. Invariants: 1. Acts on applied state of a serving
 * meta group only, through commands. 2. One command is on its way at a time; what came to nothing
 * is tried again at the next look.
 */
import type { MetaCommand } from "../machine/command.js";
import type { EntropyPort, LoggerPort } from "../ports.js";
import type { GroupDriver } from "./driver.js";
import type { Intake } from "./intake.js";
import type { ProposalResult } from "./results.js";
import type { HostSettings } from "./settings.js";

const COMMAND_BYTES = 512;
const PATIENCE_MS = 10_000;

export interface RosterPorts {
  readonly entropy: EntropyPort;
  readonly logger: LoggerPort;
}

export class Roster {
  private onItsWay = false;

  constructor(
    private readonly settings: HostSettings,
    private readonly ports: RosterPorts,
    private readonly driver: GroupDriver,
    private readonly intake: Intake,
  ) {}

  /**
   * Proposes what the records lack. Called by the housekeeping and when the meta group begins to
   * serve.
   */
  check(nowMs: number): void {
    if (this.onItsWay || !this.driver.leadership.isServing) return;
    const command = this.missing();
    if (command === null) return;
    this.onItsWay = true;
    const done = (result: ProposalResult): void => this.finish(command, result);
    this.intake.propose(command, COMMAND_BYTES, nowMs + PATIENCE_MS, done);
  }

  private missing(): MetaCommand | null {
    const { settings } = this;
    const { meta } = this.driver.machine;
    if (meta.cluster() === null) {
      return {
        kind: "found-cluster",
        clusterId: settings.clusterId === "" ? this.newClusterId() : settings.clusterId,
        dataPartitions: settings.initialPartitions,
        replicationFactor: settings.replicationFactor,
        members: settings.founders.map(({ nodeId, endpoint }) => ({
          nodeId,
          endpoint,
          storageId: nodeId === settings.nodeId ? settings.storageId : "",
        })),
      };
    }
    const member = meta.member(settings.nodeId);
    if (member === null || member.endpoint === settings.endpoint) return null;
    const { nodeId, endpoint } = settings;
    return { kind: "update-member", nodeId, endpoint, storageId: "" };
  }

  private newClusterId(): string {
    let id = "";
    for (let at = 0; at < 4; at++) id += this.ports.entropy.uint32().toString(16).padStart(8, "0");
    return id;
  }

  private finish(command: MetaCommand, result: ProposalResult): void {
    this.onItsWay = false;
    const fields = { command: command.kind, result: result.status };
    this.ports.logger.log("info", "The roster was brought up to date.", fields);
  }
}
