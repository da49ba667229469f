/** Certificates that are renewed while the server runs, as orchestrators renew them. */
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import t from "tap";
import { makeSelfSigned } from "../../src/server/certificate.js";
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

t.test("A14.9 a renewed certificate is used by new connections; a broken one is not", async (t) => {
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
  for (const { socket } of [first, again, resumed, kept]) socket.destroy();
  t.same(await server.stop(), { code: 0, signal: null });
});
