/**
 * What somebody from outside would check of operating a cluster, each with the tests that do it: files below test/ and names of tests in
 * them. Where a test plays it in another way than an outsider would, `how` says so.
 */
import { type Proof, proof } from "./runbooks/table.js";

export interface Check {
  readonly check: string;
  readonly proofs: readonly Proof[];
  readonly how?: string;
}

const SCENARIOS = "deploy/kube/scenarios.ts";
const BOUNDS = "deploy/kube/bounds.ts";
const PROCESS = "process/server/process.test.ts";
const FOUNDING = "process/cluster/founding.test.ts";
const UPGRADE = "process/cluster/upgrading.test.ts";
const RELOAD = "process/server/reload.test.ts";
const CONSOLE = "console/console.test.ts";
const TRACING = "process/server/tracing.test.ts";
const FAULTS = "process/cluster/faults.test.ts";

export const EXAM: readonly Check[] = [
  {
    check: "two of three directories are lost: nothing is founded, nothing granted twice",
    proofs: [
      proof(FOUNDING, "P-191 two of three founders lose their disks while the third is away"),
      proof(SCENARIOS, "F1: a majority of the directories is lost"),
    ],
  },
  {
    check: "pods come back at new addresses while names are not answered",
    proofs: [
      proof(SCENARIOS, "F2: names that are answered late"),
      proof("unit/net/resolve.test.ts", "P-203 a name server that is silent: one look-up"),
    ],
    how: "a name server that is silent for 30 s or loses every third question, each once; five seconds are asserted nowhere",
  },
  {
    check: "a client CA alone: probes need no certificate, data does",
    proofs: [proof("process/contract/access.ts", "a probe needs no certificate")],
  },
  {
    check: "a joiner that waits lives, is not ready, and ends at once",
    proofs: [proof(PROCESS, "a joiner that waits answers its probes, and a signal ends it")],
  },
  {
    check: "a token file of root, read by a group of the process, and by nobody else",
    proofs: [proof("unit/server/config.test.ts", "who may read a secret file (contract 10.2)")],
  },
  {
    check: "each node restarted behind a load balancer: no failure",
    proofs: [proof(SCENARIOS, "Callers by name and by Service while every pod is made anew")],
    how: "the balancer is the stand-in's Service, which hears of each change 1 to 3 s late",
  },
  {
    check: "a renamed or unknown member of a manifest, a service link: refused, or ignored",
    proofs: [
      proof("deploy/kube/manifests.test.ts", "a member that is not known, of another kind"),
      proof("unit/server/config.test.ts", "service links of an orchestrator are no ports"),
    ],
  },
  {
    check: "promtool is silent, every alert has its unit tests",
    proofs: [
      proof("deploy/monitoring.test.ts", "promtool finds no fault in the rules"),
      proof("unit/server/exposition.test.ts", "every family has HELP and TYPE, is described"),
    ],
  },
  {
    check: "a real Prometheus: alerts fire and end, the dashboard has data",
    proofs: [
      proof("deploy/alerts/alerts.test.ts", "every alert that is shipped is driven, once"),
      proof("deploy/alerts/alerts.test.ts", "alerts fire and end"),
      proof("deploy/dashboard.test.ts", "the dashboard has data"),
    ],
  },
  {
    check: "a scrape each second at 1,025 partitions costs no leader",
    proofs: [
      proof("unit/server/exposition.test.ts", "a scrape gives way: no piece is longer than"),
    ],
    how: "`npm run perf -- load/leaders` counts elections and late turns of the loop on three nodes, `load/scrapes` measures requests beside scrapes",
  },
  {
    check: "certificates of a new CA under load",
    proofs: [
      proof(RELOAD, "a renewed certificate is used by new connections; a broken one is not"),
      proof(RELOAD, "certificate, key and CA of the peers, by SIGHUP and by their content"),
      proof("unit/net/renewal.test.ts", "a withdrawn CA: new connections, resumed sessions"),
    ],
  },
  {
    check: "a certificate of another node: refused",
    proofs: [proof("process/server/peers.test.ts", "a certificate of another node joins nothing")],
  },
  {
    check: "a release forward, back, forward; finalizing with one that is old; no way back",
    proofs: [
      proof(UPGRADE, "U5 a node is upgraded, rolled back, and upgraded again"),
      proof(UPGRADE, "U1 U8 one node is left: it holds the level back"),
      proof(UPGRADE, "U4 U5 P-131 nobody goes back"),
      proof(PROCESS, "U4 P-131 data of a level that is not supported: exit code 1"),
    ],
  },
  {
    check: "a frozen byte, an encoder that changed: red",
    proofs: [proof("compat/compat.test.ts", "are read, and written byte for byte")],
  },
  {
    check: "a debug bundle without canaries, and with a node that is missing",
    proofs: [
      proof("process/cli/bundle.test.ts", "no stored data, no secret, in no form"),
      proof("process/cli/bundle.test.ts", "a node is missing: the bundle is made, names it"),
    ],
  },
  {
    check:
      "the console: force by an admin only, names that mean harm, colours, no breach of the policy",
    proofs: [
      proof(CONSOLE, "a grant is ended by force by an admin"),
      proof(CONSOLE, "released by a writer, and only what was seen"),
      proof(CONSOLE, "names that mean harm are text (P-201)"),
    ],
    how: "axe-core is asked where SVC_AXE names it",
  },
  {
    check: "a volume fills up: overload, reads, no restart; and writes again",
    proofs: [
      proof(FAULTS, "P-120 a full disk refuses writes with a type, keeps reads, and recovers"),
      proof(FAULTS, "P-120 writes end before the disk does"),
    ],
  },
  {
    check: "a sampled request through a follower: its spans with their parents; without: nothing",
    proofs: [
      proof(
        TRACING,
        "spans of requests to leader and followers, REST and gRPC, with their parents",
      ),
    ],
  },
  {
    check: "a fault or a slow answer is found in the log by its id",
    proofs: [
      proof(PROCESS, "a fault is logged under the id that the answer names"),
      proof(RELOAD, "settings that files stand for change while the server runs"),
      proof(TRACING, "their id is in the logs of both nodes"),
    ],
    how: "the node that led tells of requests of other nodes with `--log-level=debug` only",
  },
  {
    check: "SIGTERM as process 1, whatever it is at",
    proofs: [
      proof(FOUNDING, "a signal ends it at once"),
      proof(BOUNDS, "a signal ends it meanwhile"),
      proof(PROCESS, "a joiner that waits answers its probes, and a signal ends it"),
      proof("deploy/kube/play.ts", "each has to end with 0, within the grace period"),
    ],
  },
];
