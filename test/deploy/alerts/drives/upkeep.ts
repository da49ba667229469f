/** What ends with time, what is read anew, strangers, a log that nobody takes, two versions, a replica that differs. */
import { writeFileSync } from "node:fs";
import { PeerAuthority } from "../../../doubles/net/certificates.js";
import { tokenDigestText } from "../../../../src/server/security/tokens.js";
import { serverModules } from "../../../process/cluster/server-process.js";
import { boxesOf } from "../../runbooks/documented.js";
import { peerFlags, putPeerFiles } from "../../runbooks/peer-files.js";
import { RUNBOOKS, type Stage } from "../../runbooks/stage.js";
import type { Drive, Part } from "../drive.js";
import { type Field, SCRAPER_TOKEN } from "../field.js";

const beside = (name: string): string => new URL(`../${name}`, import.meta.url).href;

const DAY_MS = 86_400_000;
const ALL = [1, 2, 3];
const STRANGERS = 8;
const CALLS = 400;
/** Of an audited line. */
const ID_CHARACTERS = 128;

let authority: PeerAuthority | null = null;
const folder = (stage: Stage, id: number): string => stage.path(`peer ${id}`);
async function issue({ stage }: Field, id: number, days: number): Promise<void> {
  authority ??= await PeerAuthority.make("peers");
  putPeerFiles(folder(stage, id), await authority.issueUntil(`node ${id}`, days * DAY_MS));
}

async function backedUp({ stage }: Field): Promise<void> {
  const boxes = boxesOf(RUNBOOKS, "Backups");
  await stage.until("a backup is taken", async () => (await stage.run(boxes, 1)).status === 0);
}

const backup: Drive = {
  how: "a backup is taken while the clocks are 27 hours behind; then they are set",
  alerts: ["SvcBackupOld"],
  begin: async (field) => {
    await backedUp(field);
    for (const id of ALL) field.stage.node(id).signal("SIGUSR2");
  },
  end: backedUp,
};

const certificates: Drive = {
  how: "a certificate for two days is put in the place of the one for a month",
  alerts: ["SvcCertificateEndsNow 3", "SvcCertificateEnds 3"],
  begin: async (field) => {
    await issue(field, 3, 2);
    field.stage.node(3).signal("SIGHUP");
  },
  end: async (field) => {
    await issue(field, 3, 30);
    field.stage.node(3).signal("SIGHUP");
  },
};

const tokens = (stage: Stage): string => stage.path("tokens");
const putTokens = ({ stage }: Field, text: string): void =>
  writeFileSync(tokens(stage), text, { mode: 0o600 });
const GOOD = `reader scraper ${tokenDigestText(SCRAPER_TOKEN)}\n`;

const strangers: Drive = {
  how: "callers with a wrong token, and a token file with a mistake",
  alerts: ["SvcStrangers 3", "SvcReloadFailed 3"],
  begin: async (field) => {
    putTokens(field, GOOD);
    await field.again(3, { "--auth-tokens-file": tokens(field.stage) });
    putTokens(field, "no token\n");
  },
  again: async (field) => {
    field.stage.node(3).signal("SIGHUP");
    const headers = { authorization: "Bearer of nothing that anybody knows" };
    const body = { key: "k" };
    await Promise.all(
      Array.from({ length: STRANGERS }, () => field.post(3, "/v1/kv/try-get", body, headers)),
    );
  },
  end: (field) => {
    putTokens(field, GOOD);
    return field.again(3);
  },
};

const log: Drive = {
  how: "nobody takes the lines of a node's log, and much is audited",
  alerts: ["SvcLogLinesDropped 1"],
  begin: ({ stage }) => Promise.resolve(stage.node(1).child.stderr?.pause()),
  again: async (field) => {
    const headers = { "x-request-id": "i".repeat(ID_CHARACTERS) };
    const body = { resource: "nobody's", fencingToken: 1, reason: "a long log" };
    const call = (): Promise<number> => field.post(1, "/v1/locks/force-unlock", body, headers);
    await Promise.all(Array.from({ length: CALLS }, call));
  },
  end: ({ stage }) => Promise.resolve(stage.node(1).child.stderr?.resume()),
};

const versions: Drive = {
  how: "a node runs a program of another version",
  alerts: ["SvcSeveralVersions"],
  begin: (field) => field.again(3, {}, [beside("other-version.js")], { main: serverModules }),
  end: (field) => field.again(3),
};

/** One after the other, each an entry of the log: replicas compare what they are at every 4096th. */
const ENTRIES = 256;
const WRITERS = 4;

async function write(field: Field): Promise<void> {
  for (let at = 0; at < ENTRIES; at++) await field.set(1, "compared");
}

const differing: Drive = {
  how: "a node applies otherwise than the others, ends, and starts again without the fault",
  alerts: ["SvcReplicasDiffer 3"],
  // It leads nothing: it would be the others that differ.
  begin: (field) => field.again(3, {}, [beside("other-apply.js")], { main: serverModules }),
  again: async (field) => {
    // What is not in its state store yet it compares again, and ends again, before it is ready.
    if (field.stage.node(3).child.exitCode !== null) field.stage.start(3);
    else await Promise.all(Array.from({ length: WRITERS }, () => write(field)));
  },
  // The note goes with the directory. What starts in its place waits until the member is removed.
  end: async ({ stage }) => {
    await stage.kill(3);
    stage.loseDisk(3);
    stage.start(3);
  },
};

export const UPKEEP: Part = {
  name: "upkeep",
  flags: (id, stage) => [
    "--initial-cluster-partitions=4",
    // Who starts anew leads nothing.
    "--raft-enable-leader-balancer=false",
    ...peerFlags(folder(stage, id)),
  ],
  start: async (field) => {
    for (const id of ALL) await issue(field, id, 30);
    for (const id of ALL) field.stage.start(id, {}, [beside("late-clock.js")]);
    await field.stage.ready(...ALL);
  },
  drives: [backup, certificates, strangers, log, versions, differing],
};
