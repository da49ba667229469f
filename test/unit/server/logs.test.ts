/** Log lines as text and as JSON: the node's name on each, and what is said when lines were lost. */
import { Writable } from "node:stream";
import t from "tap";
import { makeLogger } from "../../../src/server/logs.js";
import { LogLines } from "../../../src/server/metrics/log-lines.js";

/** A target that takes nothing until it is let go. */
class Slow extends Writable {
  text = "";
  private go: (() => void) | null = null;
  private isOpen = false;

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString();
    if (this.isOpen) done();
    else this.go = done;
  }

  open(): void {
    this.isOpen = true;
    this.go?.();
  }
}

function lossy(format: "text" | "json"): Promise<string> {
  const target = new Slow();
  const lines = new LogLines();
  const logger = makeLogger("info", format, "svc-0", lines, target);
  const long = "x".repeat(64 * 1024);
  for (let at = 0; at < 40; at++) logger.log("info", "long", { long });
  return new Promise((resolve) => {
    target.open();
    setImmediate(() => {
      logger.log("warn", "last", { at: 1 });
      setImmediate(() => resolve(target.text));
    });
  });
}

t.test("each line has the node's name, in both forms", async (t) => {
  const json = await lossy("json");
  const lines = json.trimEnd().split("\n");
  for (const line of lines.slice(0, 3)) t.match(JSON.parse(line), { name: "svc-0", msg: "long" });
  const text = await lossy("text");
  t.match(text, /^\S+ info {2}svc-0 long long="xxx/);
  t.match(text, /\n\S+ warn {2}svc-0 last at=1\n$/);
});

t.test("lines that were dropped are told in the form of the others", async (t) => {
  const json = (await lossy("json")).trimEnd().split("\n");
  for (const line of json) t.doesNotThrow(() => JSON.parse(line) as unknown);
  t.match(json.at(-2), /"level":"warn".*"msg":"log lines dropped","count":\d+/);
  const text = (await lossy("text")).trimEnd().split("\n");
  t.match(text.at(-2), /^\S+ warn {2}svc-0 log lines dropped count=\d+$/);
});

t.test("10.8 the level may change while lines are written", async (t) => {
  const target = new Slow();
  target.open();
  const logger = makeLogger("info", "json", "svc-0", new LogLines(), target);
  logger.log("debug", "before");
  t.equal(logger.wantsDebug, false);
  logger.changeLevel("debug");
  t.equal(logger.wantsDebug, true);
  logger.log("debug", "during");
  logger.changeLevel("error");
  logger.log("warn", "after");
  await new Promise((resolve) => setImmediate(resolve));
  t.same(
    target.text
      .trimEnd()
      .split("\n")
      .map((line) => (JSON.parse(line) as { msg: string }).msg),
    ["during"],
  );
});
