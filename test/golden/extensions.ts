/**
 * Commands of our own, which files from elsewhere do not use; README.md describes them.
 */
import { numberAt, option, optionValues, parseNumber } from "./arguments.js";
import { CommandError } from "./environment.js";
import type { Handler } from "./commands.js";

const readTexts = {
  accepted: "",
  forwarded: "forwarded",
  "no-leader": "no leader",
  "too-many": "too many",
} as const;

export const ownHandlers: Readonly<Record<string, Handler>> = {
  /** restart id: what is not in storage is lost. */
  restart: (environment, command) => environment.node(numberAt(command, 0)).restart(),
  /** renew id: a new life with nothing but the term and vote of the former one. */
  renew: (environment, command) => environment.node(numberAt(command, 0)).renew(),
  /**
   * load-log id terms=(…) [term=t] [vote=v] [commit=c]: storage as given, from behind the base on;
   * then a restart.
   */
  "load-log": (environment, command) => {
    const node = environment.node(numberAt(command, 0));
    const terms = (optionValues(command, "terms") ?? []).map(parseNumber);
    const term = parseNumber(option(command, "term") ?? String(terms.at(-1) ?? 0));
    const vote = parseNumber(option(command, "vote") ?? "0");
    const commit = parseNumber(option(command, "commit") ?? String(node.storage.base.index));
    node.load(terms, { term, vote, commit });
  },
  /** request-read id context */
  "request-read": (environment, command) => {
    const node = environment.node(numberAt(command, 0));
    environment.write(readTexts[node.core.requestRead(numberAt(command, 1))]);
  },
  /** duplicate-msgs id [type=T]: messages to that node are in the pool twice. */
  "duplicate-msgs": (environment, command) => {
    const id = numberAt(command, 0);
    const type = option(command, "type");
    const copies = environment.messages.filter((message) => {
      return message.to === id && (type === null || message.type === type);
    });
    if (copies.length === 0) throw new CommandError("no messages");
    environment.messages.push(...copies);
  },
  /** report-snapshot id peer ok|failed */
  "report-snapshot": (environment, command) => {
    const outcome = command.args[2]?.name;
    if (outcome !== "ok" && outcome !== "failed") throw new CommandError("ok or failed?");
    const { core } = environment.node(numberAt(command, 0));
    core.reportSnapshot(Number(command.args[1]?.name), outcome === "ok");
  },
  /** content id: the state machine's content. */
  content: (environment, command) => {
    environment.write(environment.node(numberAt(command, 0)).content);
  },
};
