/** Manifests: one text for one manifest, read strictly, signed, and every change of a byte told. */
import t from "tap";
import { decodeText, encodeText } from "../../../src/base/bytes.js";
import { PARTITIONS_MAX } from "../../../src/base/limits.js";
import { Prng } from "../../../src/base/prng.js";
import { decodeManifest, parentAsTold } from "../../../src/backup/manifest-reader.js";
import {
  MANIFEST_MAX_BYTES,
  type Manifest,
  artifactNames,
  baseCutOf,
  encodeManifest,
  manifestText,
  parseUtcText,
  signedBytes,
  utcText,
} from "../../../src/backup/manifest.js";
import type { SignaturePort } from "../../../src/ports.js";
import { falseSignatures } from "../../doubles/backup/false-archive.js";
import { UNSIGNED, sampleId } from "../../doubles/backup/sample-backup.js";

const ID = sampleId(0xabc);
const KEYED = falseSignatures("key");

function sample(type: Manifest["type"] = "Full", partitions = [0, 3]): Manifest {
  const partitionRanges = partitions.map((partition) => ({
    ...{ partition, fromIndex: 5, fromStamp: { n: 1, l: 1000 + partition, c: 2 } },
    ...{ toIndex: 9, toStamp: { n: 2, l: 2000 + partition, c: 0xffff_ffff }, toTerm: 7 },
  }));
  const names = artifactNames({ type, partitionRanges });
  const sum = (at: number): { sizeBytes: number; sha256: string } => ({
    sizeBytes: 100 + at,
    sha256: String(at % 10).repeat(64),
  });
  return {
    ...{ backupId: ID, type, createdAtMs: 1_700_000_000_123, partitionRanges },
    ...{ parentBackupId: type === "Full" ? null : sampleId(0xab), clusterSnapshot: null },
    ...{ clusterId: 'prod "é"', coordinatorNode: "a:8084", coordinatorTerm: 6 },
    ...{ storageType: "lmdb", storageRevision: "v1", topologyGeneration: 4 },
    ...{ clusterPartitions: partitions, coveredPartitions: partitions },
    files: new Map(names.map((name, at) => [name, sum(at)])),
  };
}

function said(bytes: Uint8Array | string, signatures: SignaturePort = UNSIGNED, id = ID): string {
  const data = typeof bytes === "string" ? encodeText(bytes) : bytes;
  const read = decodeManifest("m", id, data, signatures);
  return read.ok ? "ok" : `${read.code} ${read.message}`;
}

t.test("the canonical form is what the contract says, in its order", (t) => {
  const text = manifestText(sample("Full", [0]), null);
  const range =
    '{"PartitionId":0,"FromIndex":5,"FromHlcNode":1,"FromHlcPhysical":1000,"FromHlcCounter":2,' +
    '"ToIndex":9,"ToHlcNode":2,"ToHlcPhysical":2000,"ToHlcCounter":4294967295,"ToTerm":7}';
  t.equal(
    text,
    '{"FormatVersion":1,"BackupId":"00000000-0000-0000-0000-000000000abc","Type":"Full",' +
      `"CreatedAtUtc":"2023-11-14T22:13:20.123Z","ParentBackupId":null,"PartitionRanges":[${range}],` +
      '"ClusterSnapshotNode":null,"ClusterSnapshotPhysical":null,"ClusterSnapshotCounter":null,' +
      '"BaseCutNode":1,"BaseCutPhysical":1000,"BaseCutCounter":2,"ClusterId":"prod \\"é\\"",' +
      '"CoordinatorNode":"a:8084","CoordinatorTerm":6,"StorageType":"lmdb","StorageRevision":"v1",' +
      '"TopologyGeneration":4,"ClusterPartitions":[0],"CoveredPartitions":[0],"Mac":null,' +
      `"Checksums":{"checkpoint/p00000.image":"${"0".repeat(64)}",` +
      `"log/p00000.log":"${"1".repeat(64)}"},` +
      '"Sizes":{"checkpoint/p00000.image":100,"log/p00000.log":101}}',
  );
  t.equal(decodeText(signedBytes(sample("Full", [0]))), text.replace('"Mac":null,', ""));
  t.same(baseCutOf(sample()), { n: 1, l: 1003, c: 2 });
  t.end();
});

t.test("what is written is read again, signed or not", (t) => {
  const snapshot = { n: 2, l: 2000, c: 0xffff_ffff };
  const coordinated = { ...sample("Full", [0]), clusterSnapshot: snapshot };
  for (const manifest of [sample(), sample("Incremental"), coordinated]) {
    for (const signatures of [UNSIGNED, KEYED]) {
      const read = decodeManifest("m", ID, encodeManifest(manifest, signatures), signatures);
      t.same(read, { ok: true, value: { manifest, isUnchecked: false } });
    }
    const unchecked = decodeManifest("m", ID, encodeManifest(manifest, KEYED), UNSIGNED);
    t.same(unchecked, { ok: true, value: { manifest, isUnchecked: true } });
  }
  const spaced = manifestText(sample(), null).replaceAll(",", " ,\n\t").replaceAll(":{", ": {");
  t.equal(said(spaced), "ok", "white space does not matter");
  const many = Array.from({ length: PARTITIONS_MAX }, (_, at) => 4_000_000_000 + at);
  const bytes = encodeManifest(sample("Full", many), KEYED);
  t.ok(bytes.length < MANIFEST_MAX_BYTES);
  t.equal(said(bytes, KEYED), "ok");
  t.end();
});

t.test("each thing that is wrong is refused with its name", (t) => {
  const text = manifestText(sample(), null);
  const cases: readonly (readonly [RegExp | string, string, RegExp])[] = [
    ['"FormatVersion":1', '"FormatVersion":2', /^UnsupportedFormat "m" has FormatVersion 2/],
    ['"FormatVersion":1', '"FormatVersion":"1"', /FormatVersion is not known/],
    ['"Type":"Full"', '"Type":"full"', /Type is not known/],
    ['"Type":"Full"', '"Type":"Incremental"', /ParentBackupId does not fit/],
    ['"Type":"Full",', "", /Type is missing/],
    ['"Type":"Full",', '"Type":"Full","Type":"Full",', /canonical form/],
    ['"Type":"Full",', '"Type":"Full","More":1,', /canonical form/],
    ['"ToTerm":7', '"ToTerm":7.0', /canonical form/],
    ['"ToTerm":7', '"ToTerm":7e0', /canonical form/],
    ['"ToTerm":7', '"ToTerm":"7"', /PartitionRanges\[0\].ToTerm is no whole number/],
    ['"ToTerm":7', '"ToTerm":7.5', /ToTerm is no whole number/],
    ['"ToTerm":7', '"ToTerm":0', /ToTerm is out of range/],
    ['"ToTerm":7', '"ToTerm":9007199254740993', /ToTerm is no whole number/],
    ['"ToTerm":7', '"ToTerm":-0', /ToTerm is no whole number/],
    ['"ToHlcCounter":4294967295', '"ToHlcCounter":4294967296', /ToHlcCounter is out of range/],
    ['"ToIndex":9', '"ToIndex":4', /the range of partition 0 leads backwards/],
    ['"ToHlcPhysical":2000', '"ToHlcPhysical":999', /leads backwards/],
    ['"PartitionId":3', '"PartitionId":0', /PartitionRanges does not ascend/],
    ['"CoveredPartitions":[0,3]', '"CoveredPartitions":[0]', /not what is covered/],
    ['"CoveredPartitions":[0,3]', '"CoveredPartitions":[3,0]', /does not ascend/],
    ['"ClusterPartitions":[0,3]', '"ClusterPartitions":[]', /ClusterPartitions is empty/],
    ['"ClusterPartitions":[0,3]', '"ClusterPartitions":{}', /ClusterPartitions is no list/],
    ['"BaseCutPhysical":1003', '"BaseCutPhysical":1002', /BaseCut is not the largest/],
    ['"ClusterSnapshotNode":null', '"ClusterSnapshotNode":1', /ClusterSnapshotPhysical is no/],
    ["2023-11-14T22", "2023-11-34T22", /CreatedAtUtc is no time/],
    ["2023-11-14T22", "2023-02-29T22", /CreatedAtUtc is no time/],
    ["000000000abc", "000000000abd", /of another backup/],
    ["000000000abc", "000000000ABC", /canonical form/],
    ["000000000abc", "00000000abc", /BackupId is no id/],
    ['"a:8084"', `"${"a".repeat(2000)}"`, /CoordinatorNode is too long/],
    ['"lmdb"', '"\\u006cmdb"', /canonical form/],
    ["log/p00003.log", "../../etc/passwd", /Sizes\...\/..\/etc\/passwd is missing/],
    [/log\/p00003/g, "log/p00004", /Checksums does not have its files/],
    [/log\/p00003.log/g, "__proto__", /Checksums does not have its files/],
    ['"Mac":null', '"Mac":5', /Mac is no text/],
    ['"0000', '"X000', /Checksums.checkpoint\/p00000.image is no SHA-256|no id/],
    ['"Sizes":{', '"Sizes":{"x":1,', /Sizes has another file/],
    [/^\{/, "[{", /no JSON/],
    [/^.*$/, "[]", /the manifest is no object/],
    [/^.*$/, "", /no JSON/],
    [/^.*$/, "[".repeat(100_000), /no JSON/],
  ];
  for (const [from, to, pattern] of cases) {
    const changed = text.replace(from, to);
    t.not(changed, text, String(from));
    t.match(said(changed), pattern, to.slice(0, 60));
  }
  t.match(said(new Uint8Array([0xff])), /no UTF-8/);
  t.match(said(new Uint8Array(MANIFEST_MAX_BYTES + 1)), /larger than a manifest can be/);
  const cut = { n: 2, l: 2003, c: 0xffff_ffff };
  const torn = manifestText({ ...sample(), clusterSnapshot: cut }, null);
  t.match(said(torn), /partition 0 does not end at ClusterSnapshot/);
  t.end();
});

t.test("with a key, what is not signed by it is refused", (t) => {
  t.match(said(encodeManifest(sample(), UNSIGNED), KEYED), /CorruptArtifact "m": it is not signed/);
  const foreign = encodeManifest(sample(), falseSignatures("another key"));
  t.match(said(foreign, KEYED), /CorruptArtifact "m": its signature is wrong/);
  t.end();
});

t.test("P-136 fuzz: every byte of a signed manifest counts", (t) => {
  const bytes = encodeManifest(sample("Incremental"), KEYED);
  const prng = new Prng(3);
  const missed: string[] = [];
  for (let at = 0; at < bytes.length; at++) {
    for (const mask of [1, 0x20, 0x80, 1 + prng.below(255)]) {
      const copy = bytes.slice();
      copy[at] = (copy[at] as number) ^ mask;
      if (!/^(?:CorruptArtifact|UnsupportedFormat) /.test(said(copy, KEYED))) {
        missed.push(`${at} ^ ${mask}`);
      }
    }
    if (!said(bytes.subarray(0, at), KEYED).startsWith("CorruptArtifact ")) missed.push(`${at}`);
  }
  t.same(missed, []);
  t.end();
});

t.test("what a bad manifest still tells of its parent", (t) => {
  const told = (text: string): unknown => parentAsTold(encodeText(text));
  const text = manifestText(sample("Incremental"), null);
  t.same(told(text.replace('"ToTerm":7', '"ToTerm":0')), { parent: sampleId(0xab) });
  t.same(told(manifestText(sample(), "x")), { parent: null });
  t.same(told(text.replace('"FormatVersion":1', '"FormatVersion":9')), { parent: sampleId(0xab) });
  for (const none of [
    "",
    "{}",
    "[]",
    text.slice(1),
    text.replace(/"ParentBackupId":"./, '"ParentBackupId":"x'),
  ]) {
    t.equal(told(none), null);
  }
  t.end();
});

t.test("times are written as the calendar has them, and read back", (t) => {
  const prng = new Prng(11);
  for (let at = 0; at < 5000; at++) {
    const ms = prng.below(2 ** 31) * 2000 + prng.below(2000);
    const text = utcText(ms);
    if (text !== new Date(ms).toISOString()) t.fail(text);
    if (parseUtcText(text) !== ms) t.fail(text);
  }
  for (const bad of ["", "2023-13-01T00:00:00.000Z", "2023-01-01T24:00:00.000Z", "2023-01-01"]) {
    t.equal(parseUtcText(bad), null, bad);
  }
  t.end();
});
