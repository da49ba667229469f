/**
 * What happens to pods, one story after the other: each begins with three that are ready and leaves three that are ready.
 *
 * Invariant: a story that has pods without a quorum, or waiting, looks for so long that kubelet's probes would have ended
 * them if they could.
 */
import type { Test } from "tap";
import { sleep } from "../../process/cluster/server-process.js";
import type { Play } from "./play.js";

/** Within this time nobody may begin to serve who must not. */
const WATCH_MS = 12_000;
/** Longer than the liveness probe waits: 6 failures, 10 s apart. */
const PROBED_MS = 75_000;
/** So long no question for a name is answered. */
const HUNG_MS = 30_000;

/** The first start: nobody is ready before all founders were there. */
export async function founded(t: Test, play: Play): Promise<void> {
  const set = play.stateful;
  t.equal(set.replicas, 3);
  set.create(0, 1);
  await play.until("founders wait for the third and say so", async () => {
    return /svc-2\.svc-peers/.test(await play.text(0, "/readyz?verbose"));
  });
  t.equal(await play.text(0, "/livez"), "ok");
  t.notOk(set.pod(0).isReady || set.pod(1).isReady, "nobody is ready before all have been seen");
  set.create(2);
  await play.ready("5.6 founded with all three", 0, 1, 2);
  t.equal(await play.voters(0), 3);
  await play.serves(0, 1, "one");
  t.equal(play.restarts(), 0, "waiting is no failure");
}

export async function restarted(t: Test, play: Play): Promise<void> {
  const set = play.stateful;
  const before = set.pod(1).address;
  await play.stopped(1);
  set.create(1);
  t.not(set.pod(1).address, before);
  await play.ready("back with another address", 1);
  await play.stopped(0, 1, 2);
  set.create(0, 1, 2);
  await play.ready("all back, all with other addresses", 0, 1, 2);
  await play.until("what was stored is there", () => {
    return play.cli(2, "--get", "key", "--raw").text.includes("one");
  });
}

export async function claimLost(t: Test, play: Play): Promise<void> {
  const set = play.stateful;
  await play.stopped(2);
  set.loseClaim(2);
  set.create(2);
  await play.until("P-090 a founder without its directory waits, and names the command", async () =>
    /--cluster-leave --member 3/.test(await play.text(2, "/readyz?verbose")),
  );
  t.notOk(set.pod(2).isReady);
  await play.serves(1, 0, "two");
  await play.until("the member is removed once it has been silent for long enough", () => {
    return play.cli(0, "--cluster-leave", "--member", "3").status === 0;
  });
  await play.ready("and the waiting pod is taken in", 2);
  await play.until("as a voter again", async () => (await play.voters(0)) === 3);
}

/** F1: a majority of the directories is lost. Nobody founds anything beside what is left. */
export async function majorityLost(t: Test, play: Play): Promise<void> {
  const set = play.stateful;
  await play.stopped(0, 1, 2);
  set.loseClaim(0);
  set.loseClaim(1);
  set.create(0, 1);
  await play.until("two without directories wait for the third, and name it", async () => {
    const said = await Promise.all([0, 1].map((pod) => play.text(pod, "/readyz?verbose")));
    return said.every((text) => /svc-2\.svc-peers/.test(text));
  });
  await play.nobodyServes(WATCH_MS, 0, 1);
  set.create(2);
  await play.until("P-191 then they wait to be taken in, by one without a majority", async () => {
    const said = await Promise.all([0, 1].map((pod) => play.text(pod, "/readyz?verbose")));
    return said.every((text) => /to be taken in: .*svc-2\S+ \(no leader is known\)/.test(text));
  });
  await play.nobodyServes(WATCH_MS, 0, 1, 2);
  const { status } = play.cli(2, "--cluster-leave", "--member", "1");
  t.not(status, 0, "nobody is removed without a majority");
  await play.stopped(0, 1, 2);
  await allLost(t, play);
}

/** What is left of three pods that do not run is lost as well: only a word of the operator founds anew. */
async function allLost(t: Test, play: Play): Promise<void> {
  const set = play.stateful;
  for (const ordinal of [0, 1, 2]) set.loseClaim(ordinal);
  set.settings = { ...set.settings, SVC_INITIAL_CLUSTER_STATE: "existing" };
  set.create(0, 1, 2);
  await play.nobodyServes(WATCH_MS, 0, 1, 2);
  t.notMatch(await play.text(0, "/readyz?verbose"), /^ok$/m);
  await play.stopped(0, 1, 2);
  set.settings = { ...set.settings, SVC_INITIAL_CLUSTER_STATE: "new" };
  set.create(0, 1, 2);
  await play.ready("9.6 founded anew when it is told so", 0, 1, 2);
  t.notMatch(play.cli(0, "--get", "key", "--raw").text, /one|two|three/, "and empty");
  await play.serves(0, 1, "anew");
}

export async function scaled(_: Test, play: Play): Promise<void> {
  const set = play.stateful;
  set.create(3, 4);
  await play.ready("scaled up by two, who are no founders", 3, 4);
  await play.until("and vote", async () => (await play.voters(0)) === 5);
  for (const ordinal of [4, 3]) {
    await play.until(`svc-${ordinal} leaves`, () => {
      return play.cli(ordinal, "--cluster-leave").status === 0;
    });
    await play.stopped(ordinal);
  }
  await play.until("three are left", async () => (await play.voters(1)) === 3);
  await play.ready("and ready", 0, 1, 2);
  await play.serves(2, 0, "three");
  for (const ordinal of [3, 4]) set.loseClaim(ordinal);
}

/** A claim that was kept of a pod that left, and a pod that was scaled away without leaving. */
export async function scaledAgain(t: Test, play: Play): Promise<void> {
  const set = play.stateful;
  set.create(3);
  await play.ready("scaled up by one", 3);
  await play.until("it leaves", () => play.cli(3, "--cluster-leave").status === 0);
  await play.stopped(3);
  // Its claim was kept, and the set is scaled up again without deleting it.
  set.create(3);
  await play.until("who comes with an old claim is told that it is no member any more", () =>
    /"refusal":"not-a-member"/.test(set.pod(3).log),
  );
  await play.until("and says what helps", async () =>
    /joins anew/.test(await play.text(3, "/readyz?verbose")),
  );
  await play.nobodyServes(WATCH_MS, 3);
  t.equal(await play.voters(0), 3);
  await set.delete(3);
  set.loseClaim(3);
  set.create(3);
  await play.ready("with a claim of its own it is let in", 3);
  await play.until("as a fourth", async () => (await play.voters(0)) === 4);
  // Scaled down without leaving: one voter is away, and comes back.
  await play.stopped(3);
  await play.serves(1, 2, "four");
  set.create(3);
  await play.ready("scaled up again it is the same member", 3);
  await play.until("which can still leave", () => play.cli(3, "--cluster-leave").status === 0);
  await play.stopped(3);
  set.loseClaim(3);
}

/** Callers by name and by Service while every pod is made anew. */
export async function updated(t: Test, play: Play): Promise<void> {
  const set = play.stateful;
  const callers = await play.callers();
  const service = await play.service("svc-api", "https");
  await play.until("the Service forwards to all that are ready", () => service.size === 3);
  const through = play.throughService(service);
  const before = [0, 1].map((ordinal) => set.pod(ordinal).address);
  t.same(await set.update(2), [0], "a canary: one pod");
  t.same(
    [0, 1].map((ordinal) => set.pod(ordinal).address),
    before,
    "and no other one",
  );
  const watch = play.watchUnready();
  t.same(await set.update(), [0, 0, 0], "then all of them");
  t.ok(watch() <= 1, "never more than one that is not ready");
  const { asked, failures } = await through();
  t.same(failures, [], `none of ${asked} connections through the Service failed`);
  t.ok(asked > 100, `${asked} connections`);
  t.equal(service.refused, 0);
  await service.close();
  const { rejected, answered, verdicts, text } = await callers();
  t.same(rejected, [], `the library rejected none of ${answered} calls`);
  t.ok(answered > 500, `${answered} calls`);
  for (const { property, kind } of verdicts) t.equal(kind, "pass", property);
  if (verdicts.some(({ kind }) => kind !== "pass")) t.comment(text);
}

/** Probes ask about the process alone: without a majority nothing is restarted. */
export async function quorumLost(t: Test, play: Play): Promise<void> {
  const set = play.stateful;
  const service = await play.service("svc-api", "https");
  await play.stopped(1, 2);
  await play.until("the one that is left is not ready", () => !set.pod(0).isReady);
  await play.until("and no Service forwards to it", () => service.size === 0);
  t.equal(await play.text(0, "/livez"), "ok");
  await play.nobodyServes(PROBED_MS, 0);
  t.equal(play.restarts(), 0, "no probe ended it");
  set.create(1, 2);
  await play.ready("with the others they serve on", 0, 1, 2);
  await play.serves(0, 2, "five");
  await play.until("and the Service forwards", () => service.size === 3);
  await service.close();
}

/** A host is drained while another pod is not ready. */
export async function evicted(t: Test, play: Play): Promise<void> {
  const set = play.stateful;
  t.ok(await set.evict(1), "one of three may go");
  t.notOk(await set.evict(0), "no second one before it is ready again");
  t.notOk(await set.evict(2));
  await play.ready("it is back", 1);
  await play.stopped(2);
  set.loseClaim(2);
  set.create(2);
  await play.until("one waits without its directory", async () =>
    /--cluster-leave --member 3/.test(await play.text(2, "/readyz?verbose")),
  );
  t.notOk(await set.evict(0), "the budget keeps the two that are ready");
  t.ok(await set.evict(2), "and lets go what is not ready");
  await play.until("it is taken in in the end", () => {
    return play.cli(0, "--cluster-leave", "--member", "3").status === 0;
  });
  await play.ready("all are ready", 0, 1, 2);
}

/** F2: names that are answered late, now and then, or for a while not at all. */
export async function unnamed(t: Test, play: Play): Promise<void> {
  const set = play.stateful;
  const names = await set.namesByServer();
  await play.stopped(0, 1, 2);
  set.create(0, 1, 2);
  await play.ready("all are found by a name server", 0, 1, 2);
  names.dropEvery = 3;
  await play.stopped(1);
  set.create(1);
  await play.ready("every third question is lost: back with another address", 1);
  names.dropEvery = 0;
  names.silent = true;
  await play.stopped(2);
  set.create(2);
  const endMs = performance.now() + HUNG_MS;
  let unready = 0;
  let dead = 0;
  while (performance.now() < endMs) {
    if (!(set.pod(0).isReady && set.pod(1).isReady)) unready++;
    if (set.pod(2).log !== "" && (await play.text(2, "/livez")) !== "ok") dead++;
    await sleep(500);
  }
  t.equal(unready, 0, "who has its links keeps them while nobody answers");
  await play.serves(0, 1, "six");
  t.ok(dead <= 4, `who begins then lives, too: ${dead} looks before it listened`);
  names.silent = false;
  await play.ready("and is ready when names are answered", 2);
  t.ok((await play.figure(2, "svc_resolve_failures_total")) > 0, "it was counted");
  await play.serves(2, 1, "seven");
}
