/** Certificates that are renewed while the server runs, as orchestrators renew them. */
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import t from "tap";
import { makeSelfSigned } from "../../../src/server/security/certificate.js";
import { PeerAuthority } from "../../doubles/net/certificates.js";
import { meetPeer } from "../../doubles/net/visitor.js";
import { ServerProcess, endAll, sleep, temporaryDirectory } from "../cluster/server-process.js";

const directory = temporaryDirectory();
t.teardown(async () => {
  await endAll();
  directory.remove();
});

interface Met {
  readonly socket: TLSSocket;
  readonly fingerprint: string;
  readonly session: Buffer;
}

/** Connects, and waits a moment for the ticket that would resume the session. */
function meet(port: number, session?: Buffer): Promise<Met> {
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port, rejectUnauthorized: false };
    const socket = connect({ ...options, ...(session === undefined ? {} : { session }) });
    let given: Buffer = Buffer.alloc(0);
    socket.on("error", reject);
    socket.on("session", (ticket: Buffer) => (given = ticket));
    socket.resume();
    socket.once("secureConnect", () => {
      const fingerprint = socket.getPeerCertificate().fingerprint256;
      setTimeout(() => resolve({ socket, fingerprint, session: given }), 200);
    });
  });
}

async function until(what: string, condition: () => Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + 60_000;
  while (!(await condition())) {
    if (performance.now() > deadlineMs) throw new Error(`it never came to this: ${what}`);
    await sleep(50);
  }
}

t.test(
  "contract 10.8 a renewed certificate is used by new connections; a broken one is not",
  async (t) => {
    // As secrets are mounted: names that lead through a link, which is replaced as a whole.
    const put = async (version: string, key?: string): Promise<void> => {
      const pair = await makeSelfSigned(version);
      mkdirSync(join(directory.path, version));
      writeFileSync(join(directory.path, version, "tls.crt"), pair.certificate);
      writeFileSync(join(directory.path, version, "tls.key"), key ?? pair.key);
      symlinkSync(version, join(directory.path, `${version}.link`));
      renameSync(join(directory.path, `${version}.link`), join(directory.path, "current"));
    };
    await put("first");
    const server = new ServerProcess([
      "--storage=memory",
      "--grpc-port=off",
      "--http-port=0",
      "--https-port=0",
      "--peer-port=0",
      `--tls-cert=${join(directory.path, "current", "tls.crt")}`,
      `--tls-key=${join(directory.path, "current", "tls.key")}`,
    ]);
    const { https, http } = await server.ready();
    const port = Number(https.split(":").pop());
    const first = await meet(port);
    const again = await meet(port, first.session);
    t.equal(again.socket.isSessionReused(), true, "sessions are resumed while nothing changes");
    await put("second");
    server.signal("SIGHUP");
    let now = first;
    await until("new connections see the new one", async () => {
      now = await meet(port);
      now.socket.destroy();
      return now.fingerprint !== first.fingerprint;
    });
    const resumed = await meet(port, first.session);
    t.equal(resumed.socket.isSessionReused(), false, "no session of the old one is resumed");
    t.equal(first.socket.destroyed, false, "open connections stay");
    await put("broken", "no key\n");
    await until("a change is seen without a signal too", async () => {
      await sleep(100);
      return server.log.includes("not reloaded");
    });
    t.match(server.log, /error.*not reloaded.*--tls-key/);
    const kept = await meet(port);
    t.equal(kept.fingerprint, now.fingerprint, "the old content stays");
    const metrics = await (await fetch(`http://${http}/metrics`)).text();
    t.match(metrics, /svc_reloads_total\{what="https-certificate",result="ok"\} [1-9]/);
    t.match(metrics, /svc_reloads_total\{what="https-certificate",result="failed"\} [1-9]/);
    t.match(metrics, /svc_tls_certificate_expiry_timestamp_seconds\{use="https"\} \d{10}\n/);
    t.notMatch(metrics, /use="peer"/, "there is none of that use");
    for (const { socket } of [first, again, resumed, kept]) socket.destroy();
    t.same(await server.stop(), { code: 0, signal: null });
  },
);

t.test(
  "contract 10.8 certificate, key and CA of the peers, by SIGHUP and by their content",
  async (t) => {
    const [older, newer] = [await PeerAuthority.make("older"), await PeerAuthority.make("newer")];
    const [mine, theirs] = [await older.issue("mine"), await newer.issue("theirs")];
    const path = join(directory.path, "peer");
    mkdirSync(path);
    const put = (name: string, text: string): void => {
      writeFileSync(join(path, `${name}.new`), text, { mode: 0o600 });
      renameSync(join(path, `${name}.new`), join(path, name));
    };
    const files = (pair: Awaited<ReturnType<PeerAuthority["issue"]>>): void => {
      put("ca", `${pair.ca}\n`);
      put("cert", `${pair.certificate}\n`);
      put("key", pair.key);
    };
    files(await older.issue("server"));
    const server = new ServerProcess([
      "--storage=memory",
      "--grpc-port=off",
      "--http-port=0",
      "--https-port=off",
      "--peer-port=0",
      ...["cert", "key", "ca"].map((name) => `--peer-tls-${name}=${join(path, name)}`),
    ]);
    const { http } = await server.ready();
    const port = Number(/peer=\S+:(\d+)/.exec(server.output)?.[1]);
    const metrics = async (): Promise<string> => (await fetch(`http://${http}/metrics`)).text();
    const expiry = /svc_tls_certificate_expiry_timestamp_seconds\{use="peer"\} \d{10}\n/;
    t.match(await metrics(), expiry);
    const before = await meetPeer(port, mine);
    t.equal(before.isLetIn, true);
    t.equal((await meetPeer(port, theirs)).isLetIn, false);
    const glued = `${mine.ca}${theirs.ca}`;
    t.match(glued, "----------", "a file that ends without a line end, and another one behind it");
    put("ca", glued);
    server.signal("SIGHUP");
    await until("a CA that would not be read to its end is told", async () => {
      await sleep(50);
      return /not reloaded.*--peer-tls-ca/.test(server.log);
    });
    put("ca", `${mine.ca}\n`);
    put("key", "no key\n");
    server.signal("SIGHUP");
    await until("a mistake is told", async () => {
      await sleep(50);
      return /error.*not reloaded.*--peer-tls-key/.test(server.log);
    });
    const kept = await meetPeer(port, mine);
    t.match(kept, { isLetIn: true, fingerprint: before.fingerprint }, "the old content stays");
    files(await newer.issue("server"));
    server.signal("SIGHUP");
    await until("the new CA counts", async () => (await meetPeer(port, theirs)).isLetIn);
    t.match(await meetPeer(port, mine, before.session), { isLetIn: false, isResumed: false });
    t.not((await meetPeer(port, theirs)).fingerprint, before.fingerprint);
    files(await older.issue("server again"));
    await until("a change is seen without a signal too", async () => {
      await sleep(100);
      return (await meetPeer(port, mine)).isLetIn;
    });
    const counted = await metrics();
    t.match(counted, /svc_reloads_total\{what="peer-certificate",result="ok"\} [2-9]/);
    t.match(counted, /svc_reloads_total\{what="peer-certificate",result="failed"\} [1-9]/);
    t.match(counted, expiry);
    t.same(await server.stop(), { code: 0, signal: null });
  },
);

t.test(
  "contract 10.8, 10.9 settings that files stand for change while the server runs",
  async (t) => {
    const put = (name: string, text: string): string => {
      const path = join(directory.path, name);
      writeFileSync(path, text);
      return `@${path}`;
    };
    const server = new ServerProcess([
      "--storage=memory",
      "--grpc-port=off",
      "--http-port=0",
      "--https-port=off",
      "--peer-port=0",
      `--caller-rate-limit=${put("rate", "0")}`,
      `--log-level=${put("level", "info")}`,
      `--slow-request-threshold=${put("slow", "1s")}`,
    ]);
    const { http } = await server.ready();
    const refused = async (): Promise<number> => {
      const body = JSON.stringify({ key: "k" });
      const headers = { "content-type": "application/json" };
      const ask = async (): Promise<number> => {
        const answer = await fetch(`http://${http}/v1/kv/try-get`, {
          method: "POST",
          headers,
          body,
        });
        await answer.text();
        if (answer.status === 503) t.equal(answer.headers.get("retry-after"), "1");
        return answer.status;
      };
      const all = await Promise.all(Array.from({ length: 30 }, ask));
      return all.filter((status) => status === 503).length;
    };
    t.equal(await refused(), 0);
    put("rate", "1");
    put("slow", "soon");
    server.signal("SIGHUP");
    await until("more than the rate is refused", async () => (await refused()) > 20);
    t.match(server.log, /reloaded what="caller-rate-limit" value="1"/);
    t.match(server.log, /error.*not reloaded.*--slow-request-threshold.*soon/);
    const metrics = await (await fetch(`http://${http}/metrics`)).text();
    t.match(metrics, /^svc_rate_limited_total [1-9]\d*$/m);
    t.match(metrics, /^svc_reloads_total\{what="caller-rate-limit",result="ok"\} 1$/m);
    t.match(metrics, /^svc_reloads_total\{what="slow-request-threshold",result="failed"\} 1$/m);
    put("rate", "0");
    await until("a change is seen without a signal too", async () => (await refused()) === 0);
    t.equal((await server.stop()).code, 0);
  },
);
