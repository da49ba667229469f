/**
 * Every format that is frozen, by the part of the table of levels that it belongs to. What stands
 * behind a comma is one of several messages under one version.
 */
import { COMMAND_FORMATS } from "./commands.js";
import { FILE_FORMATS } from "./files.js";
import type { Format } from "./format.js";
import { FRAME_FORMATS, MARKED_FORMATS } from "./frames.js";
import { HANDSHAKE_FORMATS } from "./handshakes.js";
import { ROW_FORMATS } from "./rows.js";

export const FORMATS: Readonly<Record<string, Readonly<Record<string, Format>>>> = {
  commands: COMMAND_FORMATS,
  stored: { ...ROW_FORMATS, ...FILE_FORMATS },
  spoken: { ...HANDSHAKE_FORMATS, ...FRAME_FORMATS },
  marked: MARKED_FORMATS,
};
