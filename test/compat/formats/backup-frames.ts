/** What nodes say to each other about a backup that is being taken: one of each kind. */
import { encodeText } from "../../../src/base/bytes.js";
import { COUNTER_MAX } from "../../../src/base/hlc.js";
import {
  type BackupAnswer,
  type BackupAsk,
  type BackupFrame,
  type BackupWord,
  decodeBackupFrame,
  encodeBackupFrame,
} from "../../../src/host/backups/backup-messages.js";
import { format } from "./format.js";

const ID = "0123456789abcdef0123456789abcdef";
const AT = { index: 77, term: 3 };
const STAMP = { n: -7, l: 1_700_000_000_001, c: COUNTER_MAX };
const PLACE = { ...AT, stamp: STAMP, chain: "00ff00ff00ff00ff" };
const STREAM = { session: 2 ** 40 + 1, stream: 2 };
const EPOCH = { epochTerm: 9, round: 4 };
const partitions = [0, 1, 4096];

const ASKS: readonly BackupAsk[] = [
  { kind: "topology" },
  { kind: "hold", session: STREAM.session, partition: 5, after: null },
  { kind: "hold", session: STREAM.session, partition: 5, after: AT },
  { kind: "renew", sessions: [1, 2 ** 40] },
  { kind: "image", ...STREAM },
  { kind: "log", ...STREAM, after: AT, last: { index: 99, term: 4 }, backupId: ID },
  { kind: "mark", backupId: ID, round: 2, partitions },
  { kind: "prepare", partitions },
  { kind: "close", ...EPOCH, at: STAMP, backupId: ID, partitions },
  { kind: "verify", ...EPOCH, partitions },
];

const ANSWERS: readonly BackupAnswer[] = [
  {
    ...{ kind: "topology", term: 9, topologyVersion: 7, level: 2, lineage: "a1b2c3d4" },
    ...{ partitions, isMoving: true },
  },
  { kind: "held" },
  { kind: "renewed", lost: [2 ** 40] },
  { kind: "image", ...PLACE, membership: encodeText("members") },
  { kind: "image", ...PLACE, membership: null },
  { kind: "log", chain: PLACE.chain, tokenFloor: 1n << 62n, ephemeralFloor: 5n },
  {
    ...{ kind: "marks", wallMs: 1_700_000_000_000 },
    items: [
      { partition: 0, mark: PLACE, end: "marked" },
      ...(["not-led", "passed", "failed"] as const).map((end) => {
        return { partition: 1, mark: null, end };
      }),
    ],
  },
  { kind: "prepared", wallMs: 1_700_000_000_000, stampMs: -1 },
  { kind: "verified", isProved: true },
  ...(["unhosted", "busy", "compacted", "other-history", "behind"] as const).map(
    (why): BackupAnswer => ({ kind: "no", why }),
  ),
  ...(["unknown", "not-leader"] as const).map((why): BackupAnswer => ({ kind: "no", why })),
];

const WORDS: readonly BackupWord[] = [
  { kind: "release", ...EPOCH, partitions },
  { kind: "leave", session: STREAM.session },
  { kind: "pull", ...STREAM, next: 3, upTo: 11, resend: true },
  { kind: "piece", ...STREAM, sequence: 3, bytes: encodeText("a piece") },
  { kind: "end", ...STREAM, pieces: 4, highestToken: -1n, highestIncarnation: 6 },
  { kind: "broken", ...STREAM, isOverrun: true },
];

export const BACKUP_FRAMES: readonly BackupFrame[] = [
  ...ASKS.map((ask): BackupFrame => ({ class: "ask", id: 12, waitMs: 5000, ask })),
  ...ANSWERS.map((answer): BackupFrame => ({ class: "answer", id: 12, answer })),
  ...WORDS.map((word): BackupFrame => ({ class: "word", word })),
];

export const BACKUP_FRAME = format(1, BACKUP_FRAMES, encodeBackupFrame, decodeBackupFrame);
