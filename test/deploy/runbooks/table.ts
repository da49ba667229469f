/**
 * Which tests carry out each runbook of scripts/deploy/README.md, by heading: files below test/ and names of tests in them. The
 * first one bears the name of the heading, where the runbook is a story of its own.
 */
export interface Proof {
  readonly file: string;
  readonly name: string;
}

const STORIES = "deploy/runbooks/runbooks.test.ts";
const told = (heading: string): Proof => ({ file: STORIES, name: heading });
export const proof = (file: string, name: string): Proof => ({ file, name });

const UPGRADE = "process/cluster/upgrading.test.ts";

export const RUNBOOK_TESTS: Readonly<Record<string, readonly Proof[]>> = {
  "One node is dead": [
    told("One node is dead"),
    proof("process/net/nodes.test.ts", "a node is killed: the others go on, and it comes back"),
  ],
  "A node is not ready": [
    told("A node is not ready"),
    proof("process/server/process.test.ts", "a joiner that waits answers its probes"),
  ],
  "An address changed": [
    told("An address changed"),
    proof("deploy/kube/scenarios.ts", "all back, all with other addresses"),
  ],
  "One disk is lost": [
    told("One disk is lost"),
    proof("process/cluster/founding.test.ts", "P-090 P-191 one lost disk: it waits"),
    proof("deploy/kube/scenarios.ts", "the member is removed once it has been silent"),
  ],
  "A majority is gone for a while": [
    told("A majority is gone for a while"),
    proof("deploy/kube/scenarios.ts", "Probes ask about the process alone"),
  ],
  "A majority of the disks is lost": [
    told("A majority of the disks is lost"),
    proof("process/backups/force.test.ts", "7.7 a node that is left goes on alone"),
    proof("deploy/kube/scenarios.ts", "a majority of the directories is lost"),
  ],
  "All disks are lost": [
    told("All disks are lost"),
    proof("process/backups/drill.test.ts", "7.5 P-138 all disks are lost"),
  ],
  "A disk is full": [
    told("A disk is full"),
    proof("process/cluster/faults.test.ts", "P-120 a full disk refuses writes with a type"),
    proof("process/cluster/faults.test.ts", "P-120 writes end before the disk does"),
  ],
  "A slow disk": [
    told("A slow disk"),
    proof("deploy/alerts/drives/slow.ts", "each write of the log of two nodes takes 1.1 s"),
  ],
  "A clock is wrong": [told("A clock is wrong"), proof("process/cli/check.test.ts", "t.test(")],
  "Requests are slow or refused": [
    told("Requests are slow or refused"),
    proof("process/server/reload.test.ts", "settings that files stand for change"),
  ],
  "A certificate ends, or ended": [
    told("A certificate ends, or ended"),
    proof("process/server/reload.test.ts", "a renewed certificate is used by new connections"),
    proof("process/server/reload.test.ts", "certificate, key and CA of the peers"),
  ],
  Backups: [told("Backups"), proof("process/backups/taking.test.ts", "t.test(")],
  "Upgrade and way back": [
    told("Upgrade and way back"),
    proof(UPGRADE, "U5 a node is upgraded, rolled back, and upgraded again"),
    proof(UPGRADE, "U4 U5 P-131 nobody goes back"),
  ],
  "Finalizing is held up": [proof(UPGRADE, "U1 U8 one node is left: it holds the level back")],
  "Move to other machines": [
    told("Move to other machines"),
    proof("deploy/kube/scenarios.ts", "scaled up by two, who are no founders"),
  ],
  "Restore into a new namespace": [told("Restore into a new namespace")],
  "Reading what a node says": [
    told("Reading what a node says"),
    proof("process/server/process.test.ts", "a fault is logged under the id that the answer names"),
    proof("process/server/node-debug.test.ts", "5.7 a node debug has all members"),
    proof("unit/server/audit.test.ts", "contract 10.7 administrative calls and refusals"),
  ],
};
