/**
 * One lock: who holds it, with which token, for how long; and its release in the holder's stead.
 * A node of this version cannot list locks, and says so here.
 */
import { actionButton, Notice } from "../parts/action.js";
import type { Api } from "../parts/api.js";
import { confirmed } from "../parts/confirmation.js";
import { element, facts, fill, form, labelled, nameOf, select } from "../parts/elements.js";
import type { Page } from "../parts/page.js";
import type { LockInfo } from "../parts/shapes.js";
import { duration, moment, printable } from "../parts/words.js";

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

interface Asked {
  readonly resource: string;
  readonly durability: number;
}

async function release(api: Api, asked: Asked, info: LockInfo): Promise<string | null> {
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

function lockFacts(asked: Asked, info: LockInfo): HTMLElement {
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
    const look = async (): Promise<void> => {
      const asked = { resource: name.value, durability: Number(durability.value) };
      fill(found);
      try {
        const info = await api.post<LockInfo>("/v1/locks/get-info", asked);
        notice.clear();
        if (info.type !== GOT) return notice.say("none", `Not found: ${saidOf(info.type)}.`);
        const free = actionButton(
          "Release it…",
          notice,
          async () => {
            const said = await release(api, asked, info);
            if (said !== null) fill(found);
            return said;
          },
          "danger",
        );
        fill(found, lockFacts(asked, info), free);
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
        "Locks are looked up by name: this version of the server cannot list them. ",
        "A release is sent as the holder's own, with the fencing token that is shown.",
      ),
    );
    return { root, refresh: null };
  },
};
