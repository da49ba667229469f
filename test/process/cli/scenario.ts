/**
 * Every operation of svc-cli with what it answers, in the order in which it is run against a fresh node. `NAME` in
 * words and answers stands for a prefix, so that the scenario can run once per format on one node.
 */

export interface Step {
  readonly words: readonly string[];
  readonly exit: 0 | 1;
  /** The whole of stdout in console format. */
  readonly console: string | RegExp;
  /** Members that the JSON document must have, or the document itself when it is no object. */
  readonly json: unknown;
}

/** Set members of a step in the order of the table below. */
function step(words: string, exit: 0 | 1, console: string | RegExp, json: unknown): Step {
  return { words: words.split(" "), exit, console, json };
}

const TIME = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`;
const HEX_OWNER = /^f0 acquired [0-9a-f]{32}$/;

export const KV_STEPS: readonly Step[] = [
  step("--set NAMEk --value blue", 0, "r0 set", {
    key: "NAMEk",
    success: true,
    type: 0,
    revision: 0,
    durability: 1,
  }),
  step("--set NAMEk --value red --compare-revision 7", 1, "r0 not set", {
    success: false,
    type: 1,
  }),
  step("--set NAMEk --value red --compare-value green", 1, "r0 not set", { type: 1 }),
  step("--set NAMEk --value red --flags 8", 1, "r0 not set", { type: 1, revision: 0 }),
  step("--set NAMEk --value red --compare-value blue --expires 60000", 0, "r1 set", {
    revision: 1,
  }),
  step("--get NAMEk", 0, "r1 get red", { value: "red", valueBase64: "cmVk", revision: 1 }),
  step("--get NAMEk --revision 0", 0, "r0 get blue", { value: "blue", revision: 0 }),
  step("--get NAMEnone", 1, "r0 not get", { success: false, value: null, valueBase64: null }),
  step("--get NAMEk --durability Ephemeral", 1, "r0 not get", { success: false, durability: 0 }),
  step("--get __svc:NAME", 1, "r0 not get", { success: false }),
  step(
    "--get-kv NAMEk",
    0,
    new RegExp(`^r1 get red\nExpires: ${TIME}\nModified: ${TIME}\nBytes: 3$`),
    { value: "red", key: "NAMEk" },
  ),
  step("--get-kv NAMEnone", 1, "r0 not get", { expires: { n: 0, l: 0, c: 0 } }),
  step("--extend NAMEk --expires 60000", 0, "r1 extended", { success: true, type: 2 }),
  step("--extend NAMEnone --expires 60000", 1, "not found", { success: false, type: 103 }),
  step("--extend NAMEk --expires 0", 1, "not found", { success: false, type: 100 }),
  step("--set NAMEb/1 --value one", 0, "r0 set", {}),
  step("--set NAMEb/2 --value=", 0, "r0 set", {}),
  step("--set NAMEb/2/3 --value deep", 0, "r0 set", {}),
  step("--get-by-bucket NAMEb", 0, "r0 NAMEb/1 one\nr0 NAMEb/2 ", [
    { key: "NAMEb/1", value: "one", valueBase64: "b25l", revision: 0 },
    { key: "NAMEb/2", value: "", valueBase64: "", revision: 0 },
  ]),
  step(
    "--scan-by-prefix NAMEb/",
    0,
    "r0 NAMEb/1 one\nr0 NAMEb/2 \nr0 NAMEb/2/3 deep",
    /^\[\{"key":"NAMEb\/1".*deep.*\]$/,
  ),
  step("--scan-by-prefix NAMEnothing", 0, "", []),
  step("--scan-by-prefix __svc:", 1, "", []),
  step("--get-by-bucket __svc:x", 1, "", []),
  step("--delete NAMEk", 0, "r2 deleted", { success: true, type: 4, revision: 2 }),
  step("--delete NAMEk", 1, "not found", { success: false, type: 103 }),
  step("--set NAMEe --value x --durability Ephemeral", 0, "r0 set", { durability: 0 }),
  step("--get NAMEe --durability Ephemeral", 0, "r0 get x", { durability: 0 }),
];

export const LOCK_STEPS: readonly Step[] = [
  step("--lock NAMEr --expires 60000 --owner me", 0, "f0 acquired me", {
    resource: "NAMEr",
    isAcquired: true,
    fencingToken: 0,
    owner: "me",
  }),
  step("--lock NAMEr --expires 60000 --owner me", 0, "f0 acquired me", { isAcquired: true }),
  step("--lock NAMEr --expires 60000 --owner you", 1, "f0 not acquired you", {
    isAcquired: false,
    fencingToken: 0,
    owner: "you",
  }),
  step("--lock NAMEr --expires 60000 --owner you --wait 150", 1, "f0 not acquired you", {}),
  step("--lock NAMEr --expires 0 --owner you", 1, "f0 not acquired you", { isAcquired: false }),
  step("--lock NAMEq --expires 60000", 0, HEX_OWNER, { isAcquired: true }),
  step("--lock NAMEr --expires 60000 --durability Ephemeral --owner e", 0, /^f\d+ acquired e$/, {}),
  step("--extend-lock NAMEr --owner me --expires 60000", 0, "f0 extended", {
    resource: "NAMEr",
    extended: true,
    fencingToken: 0,
    owner: "me",
  }),
  step("--extend-lock NAMEr --owner you --expires 60000", 1, "f0 not extended", {
    extended: false,
  }),
  step("--get-lock NAMEr", 0, "f0 me", { resource: "NAMEr", owner: "me", fencingToken: 0 }),
  step("--unlock NAMEr --owner you", 1, "not unlocked", { unlocked: false, type: 103 }),
  step("--unlock NAMEr --owner me", 0, "unlocked", {
    resource: "NAMEr",
    unlocked: true,
    type: 3,
  }),
  step("--unlock-lock NAMEr --owner me", 1, "not unlocked", { unlocked: false, type: 102 }),
  step("--get-lock NAMEr", 1, "not found", null),
  step("--lock NAMEr --expires 60000 --owner base64:/w==", 0, "f1 acquired base64:/w==", {
    fencingToken: 1,
  }),
  step("--get-lock NAMEr", 0, "f1 base64:/w==", { owner: "base64:/w==" }),
  step("--unlock NAMEr --owner base64:/w==", 0, "unlocked", {}),
  step("--lock NAMEl/1 --expires 60000 --owner me --note noted", 0, "f0 acquired me", {}),
  step("--lock NAMEl/2 --expires 60000 --owner base64:/w==", 0, "f0 acquired base64:/w==", {}),
  step("--unlock NAMEl/2 --owner base64:/w==", 0, "unlocked", {}),
  step(
    "--list-locks --prefix NAMEl/",
    0,
    /^Resource +Owner +Token +Expires in +Waiters +Note\n[- ]+\nNAMEl\/1 +me +0 +\d+\.\d s +0 +noted\nNAMEl\/2 +- +0 +- +0 +-$/,
    /^\[\{"resource":"NAMEl\/1","owner":"me","fencingToken":0,"held":true,.*"waiters":0,"note":"noted"\},\{"resource":"NAMEl\/2","owner":null,.*"note":null\}\]$/,
  ),
  step(
    "--list-locks --prefix NAMEl/ --held --limit 1 --durability Ephemeral",
    0,
    "No locks found.",
    [],
  ),
  step("--list-locks --limit=-1", 1, "No locks found.", []),
  step("--force-unlock NAMEl/1 --fencing-token 7 --reason why", 1, "not unlocked: InvalidOwner", {
    resource: "NAMEl/1",
    type: 103,
    fencingToken: 0,
    owner: null,
    auditId: 0,
  }),
  step(
    "--force-unlock NAMEl/2 --fencing-token 0 --reason why",
    1,
    "not unlocked: LockDoesNotExist",
    {
      type: 102,
    },
  ),
  step("--force-unlock NAMEl/1 --fencing-token 0 --reason=", 1, "not unlocked: InvalidInput", {
    type: 100,
  }),
  step(
    "--force-unlock NAMEl/1 --fencing-token 0 --reason why --drop-waiters",
    0,
    /^f0 unlocked me audit \d+$/,
    { type: 3, owner: "me", fencingToken: 0 },
  ),
  step(
    "--lock-audit --prefix NAMEl/",
    0,
    new RegExp(
      `^Time +Resource +Token +Owner +By +Reason\\n[- ]+\\n${TIME}  NAMEl/1 +0 +me +anonymous +why$`,
    ),
    /^\[\{"auditId":\d+,"partitionId":\d,"resource":"NAMEl\/1","durability":1,"owner":"me",.*"reason":"why".*\}\]$/,
  ),
  step("--lock-audit --prefix NAMEnone", 0, "No lock was released by force.", []),
  step("--lock-audit --limit=-1", 1, "No lock was released by force.", []),
];

const PARAMETERS = "increment 1 max - block default incarnation 0";

export const SEQUENCE_STEPS: readonly Step[] = [
  step("--create-sequence NAMEs", 0, `r0 created NAMEs current 0 ${PARAMETERS}`, {
    name: "NAMEs",
    currentValue: 0,
    incarnation: 0,
    durability: "Persistent",
  }),
  step("--create-sequence NAMEs", 1, "not created: AlreadyExists", {
    name: "NAMEs",
    type: "AlreadyExists",
  }),
  step("--create-sequence NAMEbad --increment 0", 1, "not created: InvalidInput", {
    type: "InvalidInput",
  }),
  step("--next-sequence NAMEs", 0, "r1 next NAMEs 1", {
    name: "NAMEs",
    start: 1,
    end: 1,
    count: 1,
    revision: 1,
  }),
  step("--reserve-sequence NAMEs --count 3", 0, "r2 reserved NAMEs 2..4 count 3", { end: 4 }),
  step("--reserve-sequence NAMEs", 0, "r3 reserved NAMEs 5", { start: 5, count: 1 }),
  step("--get-sequence NAMEs", 0, `r3 get NAMEs current 5 ${PARAMETERS}`, { currentValue: 5 }),
  step("--next-sequence NAMEs --idempotency-key a", 0, /^r4 next NAMEs 6$/, { revision: 4 }),
  step("--next-sequence NAMEs --idempotency-key a", 0, /^r4 next NAMEs 6$/, { revision: 4 }),
  step("--reserve-sequence NAMEs --count 2 --idempotency-key a", 1, /InvalidInput$/, {
    type: "InvalidInput",
  }),
  step(
    "--update-sequence NAMEs --current-value 9007199254740992 --increment 1 --block-size 1",
    0,
    /^r\d+ updated NAMEs current 9007199254740992 increment 1 max - block 1 incarnation 1$/,
    /"currentValue":9007199254740992,/,
  ),
  step(
    "--next-sequence NAMEs",
    0,
    /^r\d+ next NAMEs 9007199254740993$/,
    /"start":9007199254740993,/,
  ),
  step("--update-sequence NAMEs --max-value 9007199254740993", 0, /max 9007199254740993/, {}),
  step("--next-sequence NAMEs", 1, "not allocated: MaxValueExceeded", { type: "MaxValueExceeded" }),
  step("--update-sequence NAMEs --remove-max-value --remove-block-size", 0, /max - block default/, {
    maxValue: null,
    blockSize: null,
  }),
  step("--update-sequence NAMEnone --increment 2", 1, "not updated: NotFound", {
    type: "NotFound",
  }),
  step("--next-sequence NAMEnone", 1, "not allocated: NotFound", { type: "NotFound" }),
  step("--get-sequence NAMEnone", 1, "not found", null),
  step("--delete-sequence NAMEs", 0, "deleted", { name: "NAMEs", deleted: true }),
  step("--delete-sequence NAMEs", 1, "not found", { name: "NAMEs", deleted: false }),
];

const ID = "0b8d6c1e-4a57-4a3c-9a51-6f6e1d2c3b4a";
const NOT_CONFIGURED = { outcome: "NotConfigured" };

export const ADMINISTRATION_STEPS: readonly Step[] = [
  step(
    "--cluster-members",
    0,
    /^Membership version 1 {2}Local role Voter {2}Initialized true\n\nEndpoint +Node ID +Role +Joined Version\n/,
    { membershipVersion: 1, localRole: "Voter", initialized: true },
  ),
  step(
    "--cluster-status",
    0,
    /^healthy: 1 node\(s\), 1 ready; membership version \d+\n\nState +Node +Role +Leads +Hosts +[\s\S]*\nPartitions: 5 of 5 have a leader\n/,
    { healthy: true, problems: [], partitions: { total: 5, withoutLeader: [] } },
  ),
  step(
    "--cluster-leave --node NODE",
    1,
    /^Node NODE {2}Outcome RefusedInsufficientVoters {2}Membership version 1\n/,
    { left: false, outcome: "RefusedInsufficientVoters", drained: false },
  ),
  step("--cluster-finalize", 0, /^Already finalized: level 2\.$/, {
    success: true,
    status: "AlreadyFinalized",
    level: 2,
  }),
  step("--cluster-finalize --level 9", 1, /^Refused: status InvalidInput — .+/, {
    success: false,
    status: "InvalidInput",
    level: 2,
  }),
  step(
    "--cluster-placement",
    0,
    /^Replication factor 0 \(full replication\) {2}Rebalancer disabled {2}Node \S+ hosts 4 of 4 partitions\n\nPartition +State +Generation +Effective RF +Hosted here +Replicas\n[\s\S]*all voters/,
    { replicationFactor: 0, hostedPartitionCount: 4 },
  ),
  step(
    "--set-replication-factor 3 --partition 1",
    0,
    /^Committed: partition 1 replication factor override set to 3 \(generation \d+\)\.$/,
    { success: true, status: "Success" },
  ),
  step(
    "--cluster-placement",
    0,
    /\n1 +Active +\d+ +1 +yes +\S+ \(Voter\)\n[\s\S]*\n\nNode +Replicas +Voters +Learners +Removing\n[- ]+\n\S+ +1 +1 +0 +0$/,
    { replicationFactor: 0, hostedPartitionCount: 4 },
  ),
  step(
    "--set-replication-factor 0 --partition 1",
    0,
    /set to 0 \(cleared; inherits the global factor\) \(generation \d+\)\.$/,
    { success: true },
  ),
  step("--set-replication-factor 3 --partition 999", 1, /^Refused: status InvalidInput — ./, {
    success: false,
    status: "InvalidInput",
  }),
  step(
    "--register-key-range NAMEspace",
    0,
    /^Seeded: NODE — ./,
    /^\[\{"endpoint":"NODE","seeded":true/,
  ),
  step("--register-key-range NAMEspace", 0, /^Registered: NODE — ./, /"seeded":false/),
  step(
    "--register-key-range __svc:x",
    1,
    /^Refused: NODE — status InvalidInput — ./,
    /InvalidInput/,
  ),
  step(
    "--ranges --key-space NAMEspace",
    0,
    /^Node \S+ initialized {2}1 key space\(s\)\n\nNAMEspace {2}routed by KeyRange on this node\nStart key +End key +Partition +Generation( +Keys)?\n[- ]+\n-inf +\+inf +\d+ +1( +\d+)?$/,
    { initialized: true },
  ),
  step("--ranges", 0, /key space\(s\)/, { initialized: true }),
  step(
    "--split-range NAMEspace --split-key NAMEspace/m",
    1,
    /^Not split: status BelowMinRangeSize — ./,
    { success: false, determinate: true },
  ),
  step("--split-range NAMEnone --split-key NAMEnone/m", 1, /^Not split: status NoRange — ./, {
    status: "NoRange",
  }),
  step("--merge-ranges", 0, "Merge pass complete: no adjacent ranges were small enough to fold.", {
    success: true,
    merges: 0,
  }),
  step("--unregister-key-range NAMEspace", 0, /^Removed: NODE — ./, /"status":"Removed"/),
  step("--backup-full", 1, /^NotConfigured: ./, NOT_CONFIGURED),
  step("--backup-coordinated", 1, /^NotConfigured: ./, NOT_CONFIGURED),
  step(`--backup-incremental --parent-backup-id ${ID}`, 1, /^NotConfigured: ./, NOT_CONFIGURED),
  step("--list-backups", 1, /^NotConfigured: ./, NOT_CONFIGURED),
  step(`--backup-chain ${ID}`, 1, /^NotConfigured: ./, NOT_CONFIGURED),
  step("--backup-gc --backup-gc-dry-run", 1, /^NotConfigured: ./, NOT_CONFIGURED),
  step(`--restore ${ID} --target-dir /tmp/NAMErestore`, 1, /^NotConfigured: ./, NOT_CONFIGURED),
];
