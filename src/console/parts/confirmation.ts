/**
 * Asks before something is done that cannot be undone.
 *
 * Invariants: 1. Nothing is done unless the word was typed. 2. Esc, and every other way out, is no.
 */
import { button, element, labelled } from "./elements.js";

export interface Question {
  readonly title: string;
  readonly lines: readonly (string | Node)[];
  /** What has to be typed; null: the button is enough. */
  readonly word: string | null;
  readonly action: string;
}

export function confirmed({ title, lines, word, action }: Question): Promise<boolean> {
  return new Promise((resolve) => {
    const typed = element("input", { type: "text", autocomplete: "off", spellcheck: "false" });
    const go = element("button", { type: "submit", class: "danger" }, action);
    const check = (): void => {
      go.disabled = word !== null && typed.value !== word;
    };
    typed.addEventListener("input", check);
    const submit = (event: Event): void => {
      event.preventDefault();
      if (!go.disabled) dialog.close("yes");
    };
    const field = word === null ? null : labelled(`Type “${word}” to go on`, typed);
    const cancel = button("Cancel", () => dialog.close("no"));
    const inside = element(
      "form",
      { submit },
      element("h2", { id: "question" }, title),
      ...lines.map((line) => element("p", {}, line)),
      field,
      element("div", { class: "row" }, go, cancel),
    );
    const dialog = element("dialog", { "aria-labelledby": "question" }, inside);
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    check();
    document.body.append(dialog);
    dialog.showModal();
    (word === null ? cancel : typed).focus();
  });
}
