/**
 * How each alert of the shipped rules is made to fire by a real Prometheus, and to end. A part of them each day
 * (`SVC_ALERTS`); `npm run alerts` drives all.
 */
import type { Part } from "./drive.js";
import { MEMBERS } from "./drives/members.js";
import { STOOD_IN } from "./drives/shown.js";
import { CALLERS, DISKS } from "./drives/slow.js";
import { STORAGE } from "./drives/storage.js";
import { UPKEEP } from "./drives/upkeep.js";

export const PARTS: readonly Part[] = [MEMBERS, STORAGE, CALLERS, DISKS, UPKEEP, STOOD_IN];
