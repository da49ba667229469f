/**
 * One lock: who holds it, with which token, for how long; its release in the holder's stead, and
 * the end of the grant by force, which is kept with who did it. Below: which locks there are.
 *
 * Invariants: 1. Only the grant that is shown is ended, and only after the word was typed.
 */
import { actionButton, Notice } from "../parts/action.js";
import type { Api } from "../parts/api.js";
import { confirmed } from "../parts/confirmation.js";
import { element, facts, fill, form, labelled, nameOf, select } from "../parts/elements.js";
import type { Page } from "../parts/page.js";
import type { LockInfo } from "../parts/shapes.js";
import { duration, moment, printable } from "../parts/words.js";
import { LockList, type LockName } from "./lock-list.js";

const GOT = 4;
const UNLOCKED = 3;
const TYPES: Readonly<Record<number, string>> = {
  99: "the node had an error",
  100: "the name is not acceptable",
  101: "the partition has no leader now; try again",
  102: "nobody holds this lock any more",
  103: "somebody else holds it now",
  104: "the request was aborted",
};

function saidOf(type: number): string {
  return TYPES[type] ?? `type ${type}`;
}

/** Ends the grant that is shown, whoever has it: for administrators. */
async function force(api: Api, asked: LockName, info: LockInfo): Promise<string | null> {
  const reason = element("input", { type: "text", autocomplete: "off", maxlength: "300" });
  const drop = element("input", { type: "checkbox" });
  const isSure = await confirmed({
    title: "End this grant by force?",
    lines: [
      nameOf(printable(asked.resource)),
      `Held by ${printable(info.owner ?? "")} with fencing token ${info.fencingToken}.`,
      "The holder hears of it at its next extend. What the lock protects is safe only where it " +
        "checks fencing tokens. Who did it, when and why is kept.",
      labelled("Reason", reason),
      labelled("Drop whoever waits, and leave the lock free", drop),
    ],
    word: "force",
    action: "End the grant",
  });
  if (!isSure) return null;
  if (reason.value === "") throw new Error("a reason is needed");
  const { fencingToken } = info;
  const answer = await api.post<{ readonly type: number; readonly auditId: number }>(
    "/v1/locks/force-unlock",
    { ...asked, fencingToken, reason: reason.value, dropWaiters: drop.checked },
  );
  if (answer.type !== UNLOCKED) throw new Error(saidOf(answer.type));
  return `The grant was ended: row ${answer.auditId} of the audit.`;
}

async function release(api: Api, asked: LockName, info: LockInfo): Promise<string | null> {
  const owner = info.owner ?? "";
  const isSure = await confirmed({
    title: "Release this lock?",
    lines: [
      nameOf(printable(asked.resource)),
      `Held by ${printable(owner)} with fencing token ${info.fencingToken}.`,
      "The holder is not told. What the lock protects is safe only where it checks fencing tokens.",
    ],
    word: "release",
    action: "Release",
  });
  if (!isSure) return null;
  const { fencingToken } = info;
  const answer = await api.post<{ readonly type: number }>("/v1/locks/try-unlock", {
    ...asked,
    owner,
    fencingToken,
  });
  if (answer.type !== UNLOCKED) throw new Error(saidOf(answer.type));
  return "It was released.";
}

function lockFacts(asked: LockName, info: LockInfo): HTMLElement {
  const left = Number(info.expiresInMs);
  const noted: readonly [string, HTMLElement][] =
    info.note === null ? [] : [["Note", nameOf(printable(info.note))]];
  return facts([
    ["Lock", nameOf(printable(asked.resource))],
    ["Holder", nameOf(printable(info.owner ?? ""))],
    ["Fencing token", String(info.fencingToken)],
    ["Lease left", left > 0 ? duration(left) : "–"],
    ["Lease ends", moment(info.expires.l)],
    ["Waiting", String(info.waiters)],
    ...noted,
  ]);
}

export const LOCKS: Page = {
  name: "locks",
  title: "Locks",
  open({ api }) {
    const name = element("input", { type: "text", autocomplete: "off", spellcheck: "false" });
    const durability = select(["1", "persistent"], ["0", "ephemeral"]);
    const notice = new Notice();
    const found = element("div", { class: "found" });
    const list = new LockList(api, (lock) => {
      name.value = lock.resource;
      durability.value = String(lock.durability);
      void look();
      name.focus();
    });
    const look = async (): Promise<void> => {
      const asked = { resource: name.value, durability: Number(durability.value) };
      fill(found);
      try {
        const info = await api.post<LockInfo>("/v1/locks/get-info", asked);
        notice.clear();
        if (info.type !== GOT) return notice.say("none", `Not found: ${saidOf(info.type)}.`);
        const ending = (text: string, end: typeof release): HTMLButtonElement => {
          const run = async (): Promise<string | null> => {
            const said = await end(api, asked, info);
            if (said === null) return null;
            fill(found);
            list.reload();
            return said;
          };
          return actionButton(text, notice, run, "danger");
        };
        const buttons = [ending("Release it…", release), ending("End it by force…", force)];
        fill(found, lockFacts(asked, info), element("div", { class: "row" }, ...buttons));
      } catch (error) {
        notice.fail(error);
      }
    };
    const root = element(
      "div",
      {},
      form(
        () => void look(),
        labelled("Name of the lock", name),
        labelled("Kind", durability),
        element("button", { type: "submit" }, "Look up"),
      ),
      notice.root,
      found,
      element(
        "p",
        { class: "muted" },
        "A release is sent as the holder's own, with the fencing token that is shown. ",
        "The end by force names the token, too: a lock that went on meanwhile stays.",
      ),
      list.root,
    );
    return { root, refresh: null };
  },
};
