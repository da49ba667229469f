/**
 * The commands of scenario files, except those that make nodes or change memberships: what each
 * does to the environment.
 */
import {
  allowOptions,
  bareWords,
  nodeNumbers,
  numberAt,
  numberOption,
  option,
} from "./arguments.js";
import { CommandError, type Environment, type Recipient } from "./environment.js";
import { addNodes } from "./addnodes.js";
import { proposeChange } from "./proposechange.js";
import { formatEntry, formatMessage, formatProgress, formatState } from "./print.js";
import type { HarnessNode } from "./node.js";
import { messageTypes } from "./wire.js";
import type { Command } from "./scenario.js";
import { ownHandlers } from "./extensions.js";

export type Handler = (environment: Environment, command: Command) => void;

const levels = ["DEBUG", "INFO", "WARN", "ERROR", "FATAL", "NONE"];

function setLevel(environment: Environment, name: string): void {
  if (!levels.includes(name.toUpperCase())) {
    throw new CommandError(`log levels must be either of [${levels.join(" ")}]`);
  }
  environment.printing = name.toUpperCase() !== "NONE";
}

function firstNode(environment: Environment, command: Command): HarnessNode {
  return environment.node(numberAt(command, 0));
}

/** Runs `work` for each node named: under headers if there are several. */
function forNodes(
  environment: Environment,
  command: Command,
  title: string,
  work: (node: HarnessNode) => void,
): void {
  const nodes = nodeNumbers(command).map((id) => environment.node(id));
  for (const node of nodes) {
    if (nodes.length > 1) environment.under(`${node.id} ${title}`, () => work(node));
    else work(node);
  }
}

function deliver(environment: Environment, command: Command): void {
  allowOptions(command, ["drop", "type"]);
  const recipients: Recipient[] = [];
  for (const { name, values } of command.args) {
    if (values === null) recipients.push({ id: Number(name), drop: false });
    else if (name === "drop") {
      recipients.push(...values.map((id) => ({ id: Number(id), drop: true })));
    }
  }
  for (const { id } of recipients) {
    if (!Number.isSafeInteger(id)) throw new CommandError("not a node number");
    const modes = new Set(recipients.filter((other) => other.id === id).map(({ drop }) => drop));
    if (modes.size > 1) throw new CommandError(`can't both deliver and drop msgs to ${id}`);
  }
  const type = option(command, "type");
  if (type !== null && !messageTypes.has(type)) throw new CommandError(`unknown type ${type}`);
  if (environment.deliver(recipients, type) === 0) environment.write("no messages\n");
}

function stabilize(environment: Environment, command: Command): void {
  allowOptions(command, ["log-level"]);
  const before = environment.printing;
  const level = option(command, "log-level");
  const named = nodeNumbers(command).map((id) => environment.node(id));
  try {
    if (level !== null) setLevel(environment, level);
    environment.stabilize(named.length > 0 ? named : environment.nodes);
  } finally {
    environment.printing = before;
  }
}

function printLog(environment: Environment, node: HarnessNode): void {
  const { storage } = node;
  if (storage.entries.length === 0) {
    const range = `first index=${storage.firstIndex}, last index=${storage.lastIndex}`;
    environment.write(`log is empty: ${range}`);
  }
  for (const entry of storage.entries) environment.write(`${formatEntry(entry)}\n`);
}

function propose(environment: Environment, command: Command): void {
  const [, word] = command.args;
  if (word === undefined) throw new CommandError("propose: the payload is missing");
  const text = word.values === null ? word.name : `${word.name}=${word.values.join(",")}`;
  const result = firstNode(environment, command).propose(text);
  if (!result.ok) throw new CommandError("raft proposal dropped");
}

function sendSnapshot(environment: Environment, command: Command): void {
  const message = firstNode(environment, command).snapshotTo(numberAt(command, 1));
  environment.messages.push(message);
  environment.write(formatMessage(message));
}

function printStatus(environment: Environment, command: Command): void {
  for (const peer of firstNode(environment, command).core.status().progress) {
    environment.write(`${formatProgress(peer)}\n`);
  }
}

const handlers: Readonly<Record<string, Handler>> = {
  _breakpoint: () => undefined,
  "add-nodes": addNodes,
  campaign: (environment, command) => firstNode(environment, command).core.campaign(),
  compact: (environment, command) => {
    const node = firstNode(environment, command);
    node.compact(numberAt(command, 1));
    printLog(environment, node);
  },
  "deliver-msgs": deliver,
  "forget-leader": (environment, command) => firstNode(environment, command).core.forgetLeader(),
  "log-level": (environment, command) => setLevel(environment, bareWords(command)[0] ?? ""),
  "process-append-thread": (environment, command) => {
    forNodes(environment, command, "processing append thread", (node) => {
      environment.processAppend(node);
    });
  },
  "process-apply-thread": (environment, command) => {
    forNodes(environment, command, "processing apply thread", (node) => {
      environment.processApply(node);
    });
  },
  "process-ready": (environment, command) => {
    forNodes(environment, command, "handling Ready", (node) => environment.handleReady(node));
  },
  propose,
  "propose-conf-change": proposeChange,
  "raft-log": (environment, command) => printLog(environment, firstNode(environment, command)),
  "raft-state": (environment) => {
    for (const { core } of environment.nodes) environment.write(`${formatState(core.status())}\n`);
  },
  "report-unreachable": (environment, command) => {
    firstNode(environment, command).core.reportUnreachable(numberAt(command, 1));
  },
  "send-snapshot": sendSnapshot,
  "set-randomized-election-timeout": (environment, command) => {
    const ticks = numberOption(command, "timeout");
    firstNode(environment, command).core.setElectionTimeout(ticks);
  },
  stabilize,
  status: printStatus,
  "tick-election": (environment, command) => firstNode(environment, command).core.tick(3),
  "tick-heartbeat": (environment, command) => firstNode(environment, command).core.tick(1),
  "transfer-leadership": (environment, command) => {
    const node = environment.node(numberOption(command, "from"));
    node.core.transferLeadership(numberOption(command, "to"));
  },
  ...ownHandlers,
};

/** Runs one command and returns its output. */
export function runCommand(environment: Environment, command: Command): string {
  let failure = "";
  try {
    const handler = Object.hasOwn(handlers, command.name) ? handlers[command.name] : undefined;
    if (handler === undefined) throw new CommandError("unknown command");
    handler(environment, command);
  } catch (error) {
    failure = error instanceof Error ? error.message : String(error);
  }
  for (const node of environment.nodes) node.core.assertState();
  const output = environment.takeOutput() + failure;
  return output === "" ? "ok" : output;
}
