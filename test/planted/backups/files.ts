/** Planted bugs of the files of backups: artifacts, manifests, catalogue, collection. */
import type { RecordBug } from "../records.js";
import { backup } from "./bug.js";

const USED = ["backup/artifact-files.test", "P-136 the bytes that are checked"] as const;
const TOLD = ["backup/formats.test", "P-136 every flipped"] as const;
const MOVED = ["backup/formats.test", "P-136 records that are lost"] as const;
const MARKED = ["backup/formats.test", "a log whose entries"] as const;
const PUBLISHED = ["backup/catalogue.test", "P-140 after a crash at any moment"] as const;
const RULES = ["backup/catalogue.test", "7.3 the rules of chains"] as const;
const FOREIGN = ["backup/catalogue.test", "P-136 files that are swapped"] as const;
const ROOT = ["backup/catalogue.test", "a root that is a link"] as const;
const SIGNED = ["backup/manifest.test", "with a key, what is not signed"] as const;

export const backupFileBugs: readonly RecordBug[] = [
  backup(
    "P-136",
    "one copy of an artifact is hashed, another one is used",
    USED,
    "backup/artifact-files",
    "    readSlices(reader, expected, decoder, options, end);",
    `    const blind = { push: () => null, end: () => ({ ok: true, value: null }) as never };
    readSlices(reader, expected, blind, options, (hashed) => {
      if (!hashed.ok) return end(hashed);
      archive.open(path, (again) => {
        if (!again.ok) return end(artifactFault(again));
        const unhashed = Object.assign(Object.create(again.value), { sum: () => expected });
        readSlices(unhashed, expected, decoder, options, end);
      });
    });`,
  ),
  backup(
    "P-136",
    "a checksum leaves out the last byte",
    TOLD,
    "backup/frames",
    "this.checksum = crc32c(bytes, this.checksum, 0, end);",
    "this.checksum = crc32c(bytes, this.checksum, 0, end - 1);",
    "const checksum = crc32c(bytes, this.checksum, at, end);",
    "const checksum = crc32c(bytes, this.checksum, at, end - 1);",
  ),
  backup(
    "P-136",
    "checksums of records do not hang together",
    MOVED,
    "backup/frames",
    "this.checksum = crc32c(bytes, this.checksum, 0, end);",
    "this.checksum = crc32c(bytes, 7, 0, end);",
    "const checksum = crc32c(bytes, this.checksum, at, end);",
    "const checksum = crc32c(bytes, 7, at, end);",
  ),
  backup(
    "P-132",
    "a log may end behind its mark",
    MARKED,
    "backup/log-file",
    "if (this.marked === null || compareHlc",
    "if (this.marked !== null && compareHlc",
  ),
  backup(
    "P-140",
    "a manifest gets its name before the artifacts are durable",
    PUBLISHED,
    "backup/publish",
    "inOrder([...artifacts, ...publication],",
    "inOrder([...publication, ...artifacts],",
  ),
  backup(
    "P-140",
    "the files of a backup go although its manifest stays",
    ["backup/catalogue.test", "P-140 faults that last"],
    "backup/publish",
    'if (!removed.ok && removed.code !== "missing") return done(true);',
    "void removed;",
  ),
  backup(
    "P-135",
    "a gap between two backups is a continuation",
    RULES,
    "backup/chain",
    "range.fromIndex !== before.toIndex + 1",
    "range.fromIndex < before.toIndex + 1",
  ),
  backup(
    "P-136",
    "a file too many is not looked at",
    FOREIGN,
    "backup/catalogue",
    "    if (!manifest.files.has(name)) return corrupt(name",
    "    if (name === manifest.backupId) return corrupt(name",
  ),
  backup(
    "P-139",
    "a directory that a group may write is good enough",
    ROOT,
    "backup/catalogue",
    "const OTHERS_WRITE = 0o022;",
    "const OTHERS_WRITE = 0o002;",
  ),
  backup(
    "P-136",
    "a signature is not compared",
    SIGNED,
    "backup/manifest-reader",
    "if (!signatures.verify(signedBytes(manifest), mac))",
    "if (!signatures.verify(signedBytes(manifest), signatures.sign(signedBytes(manifest))))",
  ),
];
