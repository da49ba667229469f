/** Every command at the level of the program, alone, with its number and version. */
import { PROGRAM, SINCE } from "../../../src/base/levels.js";
import { ByteReader, ByteWriter } from "../../../src/base/codec.js";
import { placementGeneration } from "../../../src/base/ids.js";
import { Prng } from "../../../src/base/prng.js";
import { readCommand, writeCommand } from "../../../src/machine/commands/codec.js";
import {
  type Command,
  GROUP_COMMANDS,
  HEIR_COMMANDS,
  KV_COMMANDS,
  LOCK_COMMANDS,
  RANGE_COMMANDS,
  SEQUENCE_COMMANDS,
} from "../../../src/machine/commands/command.js";
import { META_COMMANDS } from "../../../src/machine/commands/meta-codec.js";
import { InventingReader } from "../../doubles/base/inventing-reader.js";
import { type Format, format } from "./format.js";

const FAMILIES = [
  LOCK_COMMANDS,
  HEIR_COMMANDS,
  SEQUENCE_COMMANDS,
  KV_COMMANDS,
  RANGE_COMMANDS,
  GROUP_COMMANDS,
  META_COMMANDS,
];
const EACH = 3;
/** Forms that are not made up: the reader that does that knows no number above 2. */
const NAMED: readonly Command[] = [
  {
    kind: "change-replicas",
    items: [
      {
        ...{ partitionId: 7, generation: placementGeneration(9) },
        change: { kind: "keep", nodeId: 3 },
      },
    ],
  },
];

type Codec = { readonly number: number; readonly version: number };

/** So many commands of the kind, made up. */
function invented({ number, version }: Codec, count: number): Command[] {
  const random = new Prng(number);
  const commands: Command[] = [];
  while (commands.length < count) {
    const command = readCommand(new InventingReader(random, [number, version]));
    if (command === "unknown") throw new Error(`no command has the number ${number}`);
    if (command !== null) commands.push(command);
  }
  return commands;
}

export function readWhole(bytes: Uint8Array): Command | null {
  const reader = new ByteReader(bytes);
  const command = readCommand(reader);
  return command === "unknown" || !reader.isComplete() ? null : command;
}

function writeWhole(command: Command): Uint8Array {
  const writer = new ByteWriter(64);
  writeCommand(writer, command);
  return writer.finish();
}

/** Whether the program writes that version of the kind at its level. */
function isWritten(kind: string, version: number): boolean {
  const since = (SINCE.commands as Record<string, Record<number, number>>)[kind]?.[version];
  return since !== undefined && since <= PROGRAM.levels.max;
}

const written = FAMILIES.flatMap((family) => Object.entries<Codec>(family)).filter(
  ([kind, { version }]) => isWritten(kind, version),
);

/** One command of every kind, for entries. */
export const EVERY_COMMAND: readonly Command[] = written.flatMap(([, codec]) => invented(codec, 1));

export const COMMAND_FORMATS: Readonly<Record<string, Format>> = Object.fromEntries(
  written.map(([kind, codec]) => {
    const named = NAMED.filter((command) => command.kind === kind);
    const commands = [...invented(codec, EACH), ...named];
    return [kind, format(codec.version, commands, writeWhole, readWhole)];
  }),
);
