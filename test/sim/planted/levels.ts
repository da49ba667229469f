/** Planted bugs of levels: what is written, proposed and let in before, and after, a level rises. */
import { edit, plantedIn, type Mutation } from "./mutation.js";

const machine = plantedIn("machine");
const host = plantedIn("host");
const control = plantedIn("control");
const disk = plantedIn("disk");

export const levelBugs: readonly Mutation[] = [
  host("P-030", "a leader proposes by the level of its directory, not of the group", "levels", [
    edit(
      "src/host/group/proposer.ts",
      "const { level } = this.group.machine;",
      "const { level } = this.shared.levelMark;",
    ),
  ]),
  host("P-030", "a leader proposes what its program supports", "levels", [
    edit(
      "src/host/group/proposer.ts",
      "const { level } = this.group.machine;",
      "const { max: level } = this.shared.settings.program.levels;",
    ),
  ]),
  host("P-030", "a command is proposed one level early", "levels", [
    edit(
      "src/host/group/proposer.ts",
      "(commands[waiter.command.kind] ?? 0) > level;",
      "(commands[waiter.command.kind] ?? 0) > level + 1;",
    ),
  ]),
  host("P-030", "a group follows what its leader's directory permits", "levels", [
    edit(
      "src/host/cluster/group-registry.ts",
      "hosted?.level.check(level, nowMs);",
      "hosted?.level.check(this.shared.levelMark.level, nowMs);",
    ),
  ]),
  host("P-030", "a group follows only where the meta partition is led", "levels", [
    edit(
      "src/host/cluster/group-registry.ts",
      "hosted?.level.check(level, nowMs);",
      "if (this.list[0]?.replica.leadership.isServing) hosted?.level.check(level, nowMs);",
    ),
  ]),
  machine("P-039", "the level of a group is no part of its record", "levels", [
    edit(
      "src/machine/machine.ts",
      "      level: this.context.level,\n",
      "      level: 1 as never,\n",
    ),
  ]),
  machine("P-030", "a raise is decided by whom the leader is linked with", "levels", [
    edit(
      "src/machine/meta/meta-levels.ts",
      "if (!reads.members().every((member) => supports(member, to))) {",
      "if (to < 0) {",
    ),
    edit(
      "src/host/cluster/finalizing.ts",
      "    for (const member of members) {\n",
      "    for (const member of members) {\n      if (member.nodeId !== this.deps.nodeId && this.deps.programOf(member.nodeId) === null) continue;\n",
    ),
  ]),
  host("P-030", "a joiner below the level is taken in", "levels", [
    edit(
      "src/host/cluster/joining.ts",
      "if (!includes(levels, cluster.level)) {",
      "if (levels.max < 0) {",
    ),
    edit(
      "src/machine/meta/meta-members.ts",
      'if (!supports(command, cluster.level)) return outcome("level-unsupported", version);\n  if (reads',
      "if (reads",
    ),
  ]),
  host("P-131", "entries are written before the directory says their level", "levels", [
    edit(
      "src/host/storage/level-mark.ts",
      "    this.raise();\n    return false;\n",
      "    this.raise();\n    return true;\n",
    ),
  ]),
  disk("P-131", "the level is not judged before the log is opened", "levels", [
    edit(
      "src/disk/level-file.ts",
      "const fault = isNew ? null : levelFault(stored, program);",
      "const fault = null;",
    ),
    edit("src/host/cluster/group-registry.ts", "if (!supported.ok) return supported;", ""),
  ]),
  disk("P-112", "the level is reported before its file is durable", "levels", [
    edit("src/disk/level-file.ts", "files.syncDirectory(directory, end);", "end(renamed);"),
  ]),
  control("P-030", "the line of a member is not rewritten for another program", "levels", [
    edit(
      "src/host/cluster/cluster-members.ts",
      "member.endpoint === endpoint && isSameProgram(member, program)) return null;",
      "member.endpoint === endpoint) return null;",
    ),
  ]),
  host("P-030", "a link speaks the higher of both protocols", "levels", [
    edit(
      "src/base/levels.ts",
      "const max = Math.min(one.max, other.max);",
      "const max = Math.max(one.max, other.max);",
    ),
  ]),
  host("P-097", "a joiner begins as the founders did", "levels", [
    edit(
      "src/host/storage/recovery.ts",
      "beginning.isAdded && machine.installed",
      "beginning.incarnation > 0 && machine.installed",
    ),
  ]),
];
