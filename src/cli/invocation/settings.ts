/**
 * Connection and output settings, from options and environment together.
 *
 * Invariants: 1. Command line before environment before default; an empty variable counts as not
 * set. 2. The server certificate goes unverified only by --insecure, or when every https endpoint
 * is on loopback and no CA was named.
 */
import { failure, ok, type Result } from "../../base/result.js";
import { ENDPOINT_DEFAULT } from "../commands/options.js";
import { readValue, type OptionValues } from "../commands/values.js";

export type Format = "console" | "json";
export type Environment = Readonly<Record<string, string | undefined>>;

export interface Settings {
  /** Where requests go: those of -c, or the one of --node. */
  readonly endpoints: readonly string[];
  /** --node, or null. */
  readonly node: string | null;
  /** True when -c or --node stands on the command line: nothing was guessed. */
  readonly isNamed: boolean;
  readonly format: Format;
  readonly insecure: boolean;
  readonly caFile: string | null;
  readonly certFile: string | null;
  readonly keyFile: string | null;
  readonly tokenFile: string | null;
  /** --token, or SVC_TOKEN; a token file wins over the variable. */
  readonly token: string | null;
  /** --timeout (ms), null when not given. */
  readonly timeoutMs: number | null;
  readonly yes: boolean;
}

export function isLoopback(endpoint: string): boolean {
  const host = new URL(endpoint).hostname;
  return host === "localhost" || host === "127.0.0.1" || host === "[::1]";
}

function allHttpsOnLoopback(endpoints: readonly string[]): boolean {
  const https = endpoints.filter((endpoint) => endpoint.startsWith("https:"));
  return https.length > 0 && https.every(isLoopback);
}

function readEndpoints(
  values: OptionValues,
  environment: Environment,
): Result<readonly string[], "usage"> {
  const node = values.text("--node");
  if (node !== null) return ok([node]);
  const given = values.texts("--connection-source");
  if (given.length > 0) return ok(given);
  const text = environment["SVC_ENDPOINTS"] || ENDPOINT_DEFAULT;
  const read = readValue({ kind: "endpoints" }, text);
  if (!read.ok) return failure("usage", `SVC_ENDPOINTS: "${text}" is not ${read.message}`);
  return ok(read.value as readonly string[]);
}

/** Settings, or what is wrong with them. */
export function makeSettings(
  values: OptionValues,
  environment: Environment,
): Result<Settings, "usage"> {
  const endpoints = readEndpoints(values, environment);
  if (!endpoints.ok) return endpoints;
  const format = values.text("--format") ?? (environment["SVC_FORMAT"] || "console");
  if (format !== "console" && format !== "json") {
    return failure("usage", `SVC_FORMAT: "${format}" is not one of console, json`);
  }
  if (values.has("--cert") !== values.has("--key")) {
    return failure("usage", "--cert and --key go together");
  }
  const caFile = values.text("--ca-cert");
  const automatic = caFile === null && allHttpsOnLoopback(endpoints.value);
  const seconds = values.number("--timeout");
  return ok({
    endpoints: endpoints.value,
    node: values.text("--node"),
    isNamed: values.has("--node") || values.has("--connection-source"),
    format,
    insecure: values.flag("--insecure") || automatic,
    caFile,
    certFile: values.text("--cert"),
    keyFile: values.text("--key"),
    tokenFile: values.text("--token-file"),
    token: values.text("--token") ?? (environment["SVC_TOKEN"] || null),
    timeoutMs: seconds === null ? null : Math.ceil(seconds * 1000),
    yes: values.flag("--yes"),
  });
}

/** The format that an error should have although the command line could not be read as a whole. */
export function guessFormat(argumentsList: readonly string[], environment: Environment): Format {
  const at = argumentsList.indexOf("--format");
  const given = at >= 0 ? argumentsList[at + 1] : undefined;
  const text =
    given ?? (argumentsList.includes("--format=json") ? "json" : environment["SVC_FORMAT"]);
  return text === "json" ? "json" : "console";
}
