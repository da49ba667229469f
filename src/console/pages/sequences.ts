/** One sequence, looked up by its name: nodes do not list them. */
import { Notice } from "../parts/action.js";
import { element, facts, fill, form, labelled, nameOf } from "../parts/elements.js";
import type { Page } from "../parts/page.js";
import type { SequenceAnswer } from "../parts/shapes.js";
import { count, moment, printable } from "../parts/words.js";

function sequenceFacts(sequence: NonNullable<SequenceAnswer["sequence"]>): HTMLElement {
  return facts([
    ["Sequence", nameOf(printable(sequence.name))],
    ["Current value", count(sequence.currentValue)],
    ["Initial value", count(sequence.initialValue)],
    ["Increment", count(sequence.increment)],
    ["Highest value", sequence.maxValue === null ? "no bound" : count(sequence.maxValue)],
    ["Block size", sequence.blockSize === null ? "that of the node" : count(sequence.blockSize)],
    ["Revision", count(sequence.revision)],
    ["Created", moment(sequence.createdAt.l)],
    ["Updated", moment(sequence.updatedAt.l)],
  ]);
}

export const SEQUENCES: Page = {
  name: "sequences",
  title: "Sequences",
  open({ api }) {
    const name = element("input", { type: "text", autocomplete: "off", spellcheck: "false" });
    const notice = new Notice();
    const found = element("div", { class: "found" });
    const look = async (): Promise<void> => {
      fill(found);
      try {
        const asked = { name: name.value };
        const { type, sequence } = await api.post<SequenceAnswer>("/v1/sequences/get", asked);
        notice.clear();
        if (sequence === null) return notice.say("none", `Not found: ${type}.`);
        fill(found, sequenceFacts(sequence));
      } catch (error) {
        notice.fail(error);
      }
    };
    const hint =
      "The current value is that of the record: a node may have taken a block of values ahead of it.";
    const root = element(
      "div",
      {},
      form(
        () => void look(),
        labelled("Name of the sequence", name),
        element("button", { type: "submit" }, "Look up"),
      ),
      notice.root,
      found,
      element("p", { class: "muted" }, hint),
    );
    return { root, refresh: null };
  },
};
