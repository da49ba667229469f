/**
 * The files of the web console (contract 3.8): static, the same for everybody. What the console
 * shows it reads by the paths of the API, with the caller's role.
 *
 * Invariants: 1. A name is looked up in the table of what was built and never becomes a path. 2.
 * Nothing is kept in memory but that table. 3. Every answer forbids what the pages do not need:
 * scripts, styles and calls of other origins, scripts and styles in the page, frames. 4. No cookie.
 */
import type { Exchange, ExtraHeaders } from "../http/exchange.js";
import type { Route } from "../http/route.js";

export type ConsoleEncoding = "br" | "gzip";

export interface ConsoleFile {
  /** Part of the path, without a slash. */
  readonly name: string;
  readonly type: string;
  /** Hexadecimal digest of the content. */
  readonly digest: string;
  /** The name says the content: it never changes. */
  readonly isFixed: boolean;
  /** In which forms it is there beside the plain one, the best first. */
  readonly encodings: readonly ConsoleEncoding[];
}

export interface ConsoleFiles {
  /** What is shown at /console/. */
  readonly first: string;
  readonly files: ReadonlyMap<string, ConsoleFile>;
  /** Reads one of them, in a form that it has; null: it cannot be read. */
  read(
    file: ConsoleFile,
    encoding: ConsoleEncoding | null,
    done: (content: Buffer | null) => void,
  ): void;
}

const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const SECURITY: ExtraHeaders = {
  "content-security-policy": CONTENT_SECURITY_POLICY,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
};
const A_YEAR_SECONDS = 31_536_000;

/** The first of `encodings` that the client takes (RFC 9110 12.5.3); null = the plain form. */
function chooseEncoding(
  accepted: string | undefined,
  encodings: readonly ConsoleEncoding[],
): ConsoleEncoding | null {
  const taken = new Set<string>();
  for (const part of (accepted ?? "").toLowerCase().split(",")) {
    const [name = "", ...parameters] = part.split(";").map((piece) => piece.trim());
    const isRefused = parameters.some((piece) => /^q=0(?:\.0*)?$/.test(piece));
    if (!isRefused) taken.add(name);
  }
  return encodings.find((encoding) => taken.has(encoding)) ?? null;
}

function isKnownTo(exchange: Exchange, tag: string): boolean {
  const known = exchange.raw.headers["if-none-match"];
  if (known === undefined) return false;
  return known.split(",").some((one) => one.trim().replace(/^W\//, "") === tag);
}

function sendFile(exchange: Exchange, source: ConsoleFiles, file: ConsoleFile): void {
  const encoding = chooseEncoding(exchange.raw.headers["accept-encoding"], file.encodings);
  const tag = `"${file.digest}${encoding === null ? "" : `-${encoding}`}"`;
  const headers: Record<string, string> = {
    ...SECURITY,
    "cache-control": file.isFixed ? `public, max-age=${A_YEAR_SECONDS}, immutable` : "no-cache",
    etag: tag,
    vary: "accept-encoding",
  };
  if (isKnownTo(exchange, tag)) return exchange.empty(304, headers);
  if (encoding !== null) headers["content-encoding"] = encoding;
  source.read(file, encoding, (content) => {
    if (content === null) refuse(exchange);
    else exchange.send(200, file.type, content, headers);
  });
}

function refuse(exchange: Exchange): void {
  exchange.problem(404, "unknown-path", "there is nothing at this path", SECURITY);
}

const shared = {
  method: "GET",
  access: "nobody",
  tag: "node",
  body: null,
  query: [],
  answer: null,
  statuses: [],
  kind: null,
} as const;

export function consoleRoutes(source: ConsoleFiles): readonly Route[] {
  const serve = (exchange: Exchange, name: string): void => {
    const file = source.files.get(name);
    if (file === undefined) refuse(exchange);
    else sendFile(exchange, source, file);
  };
  return [
    {
      ...shared,
      path: "/console",
      summary: "Show the way to the web console",
      run: (exchange) => {
        exchange.empty(308, { ...SECURITY, location: "/console/", "content-length": "0" });
      },
    },
    {
      ...shared,
      path: "/console/",
      summary: "The web console",
      run: (exchange) => serve(exchange, source.first),
    },
    {
      ...shared,
      path: "/console/{id}",
      summary: "A file of the web console",
      run: (exchange) => serve(exchange, exchange.pathId),
    },
  ];
}
