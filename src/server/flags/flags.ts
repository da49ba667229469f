/**
 * Turns the command line and the environment into raw flag values.
 *
 * Invariants: 1. Precedence: command line, environment, default. 2. An unknown flag,
 * a repeated flag or one without its value is refused, naming the flag and the nearest known one.
 * 3. Values are checked one by one here, relations between them in `config`.
 */
import { assert } from "../../base/assert.js";
import { failure, ok, type Result } from "../../base/result.js";
import { FLAGS, type Flag } from "./flag-table.js";
import { type LiveFlag, liveFileOf, liveText } from "./live-flags.js";
import {
  readBoolean,
  readDurationMs,
  readInteger,
  readNodeId,
  readPort,
  readPortOrOff,
  readSizeBytes,
  type ValueResult,
} from "./values.js";

/** What a flag's text was read as. null: no value and no default, or a port that is off. */
export type FlagValue = string | number | boolean | null;

export interface RawFlags {
  readonly values: ReadonlyMap<string, FlagValue>;
  /** Flags that were given explicitly, by whichever way. */
  readonly given: ReadonlySet<string>;
  /** Files that stand for values, by flag. */
  readonly liveFiles: Readonly<Partial<Record<LiveFlag, string>>>;
  /** What was ignored, and why. */
  readonly warnings: readonly string[];
}

export type FlagsResult = Result<RawFlags, "usage">;

/** Number of edits that turn `a` into `b` (Levenshtein, two rows). */
function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const change = a[row - 1] === b[column - 1] ? 0 : 1;
      current.push(
        Math.min(
          (previous[column] as number) + 1,
          (current[column - 1] as number) + 1,
          (previous[column - 1] as number) + change,
        ),
      );
    }
    previous = current;
  }
  return previous[b.length] as number;
}

/** The known flag nearest to `name`, or null when none is near. */
function nearestFlag(name: string): string | null {
  let best: string | null = null;
  let bestDistance = Math.max(3, Math.floor(name.length / 4)) + 1;
  for (const flag of FLAGS) {
    const distance = editDistance(name, flag.name);
    if (distance < bestDistance) {
      best = flag.name;
      bestDistance = distance;
    }
  }
  return best;
}

export function readValue(flag: Flag, text: string): ValueResult<FlagValue> {
  switch (flag.kind) {
    case "text":
      return ok(text);
    case "boolean":
      return readBoolean(text);
    case "integer":
      return readInteger(text);
    case "node-id":
      return readNodeId(text);
    case "duration":
      return readDurationMs(text);
    case "duration-or-off":
      return text === "off" ? ok(null) : readDurationMs(text);
    case "size":
      return readSizeBytes(text);
    case "port":
      return readPort(text);
    case "port-or-off":
      return readPortOrOff(text);
    case "choice":
      return flag.choices.includes(text)
        ? ok(text)
        : failure("bad-value", `one of ${flag.choices.join(", ")}`);
  }
}

/** What a flag's default is read as. */
export function defaultValue(flag: Flag): FlagValue {
  const value = flag.defaultText === null ? ok(null) : readValue(flag, flag.defaultText);
  assert(value.ok, `the default of ${flag.name} can be read`);
  return value.value;
}

/**
 * What orchestrators put into SVC_HTTP_PORT when a service is named svc-http: a link to that
 * service, and nothing that was meant for this program.
 */
const SERVICE_LINK = /^(?:tcp|udp|sctp):\/\//;

/** Whether `text`, from the variable of `flag`, is somebody else's. */
function isServiceLink(flag: Flag, text: string): boolean {
  return (flag.kind === "port" || flag.kind === "port-or-off") && SERVICE_LINK.test(text);
}

/** Flag texts of the command line, by name; or the first mistake in it. */
function collectArguments(argumentsList: readonly string[]): Result<Map<string, string>, "usage"> {
  const texts = new Map<string, string>();
  for (let at = 0; at < argumentsList.length; at++) {
    const argument = argumentsList[at] as string;
    const equals = argument.indexOf("=");
    const name = equals < 0 ? argument : argument.slice(0, equals);
    const flag = FLAGS.find((candidate) => candidate.name === name);
    if (flag === undefined) {
      const near = name.startsWith("-") ? nearestFlag(name) : null;
      const hint = near === null ? "" : ` (did you mean ${near}?)`;
      return failure("usage", `unknown flag ${name}${hint}; see --help`);
    }
    if (texts.has(name)) return failure("usage", `${name} is given twice`);
    const next = argumentsList[at + 1];
    if (equals >= 0) {
      texts.set(name, argument.slice(equals + 1));
    } else if (flag.kind === "boolean" && next !== "true" && next !== "false") {
      texts.set(name, "true");
    } else if (next === undefined || next.startsWith("--")) {
      return failure("usage", `${name} needs a value: ${name} <${flag.kind}>`);
    } else {
      texts.set(name, next);
      at++;
    }
  }
  return ok(texts);
}

/** Reads all flags. `environment` holds SVC_ variables; an empty variable counts as not set. */
export function readFlags(
  argumentsList: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): FlagsResult {
  const collected = collectArguments(argumentsList);
  if (!collected.ok) return collected;
  const values = new Map<string, FlagValue>();
  const given = new Set<string>();
  const warnings: string[] = [];
  const liveFiles: Partial<Record<LiveFlag, string>> = {};
  for (const flag of FLAGS) {
    const fromLine = collected.value.get(flag.name);
    let fromEnvironment = environment[flag.variable] || undefined;
    if (fromEnvironment !== undefined && isServiceLink(flag, fromEnvironment)) {
      const link = `${flag.variable}=${fromEnvironment}`;
      warnings.push(`${link} is a service link of an orchestrator, not a port: it is ignored`);
      fromEnvironment = undefined;
    }
    const text = fromLine ?? fromEnvironment ?? flag.defaultText;
    if (fromLine !== undefined || fromEnvironment !== undefined) given.add(flag.name);
    if (text === null) {
      values.set(flag.name, null);
      continue;
    }
    const source = fromLine === undefined ? flag.variable : flag.name;
    const path = liveFileOf(flag.name, text);
    const said = path === null ? ok(text) : liveText(path);
    if (!said.ok) return failure("usage", `${source}: ${said.message}`);
    if (path !== null) liveFiles[flag.name as LiveFlag] = path;
    const value = readValue(flag, said.value);
    if (!value.ok) return failure("usage", `${source}: "${said.value}" is not ${value.message}`);
    values.set(flag.name, value.value);
  }
  return ok({ values, given, liveFiles, warnings });
}
