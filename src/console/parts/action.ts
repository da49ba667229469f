/**
 * A button that calls the node, and the line that says how it ended.
 *
 * Invariants: 1. While a call is under way the button is off. 2. Whoever lacks the role gets to
 * know which one, and the button stays off. 3. Both are told to whoever cannot see them.
 */
import { CallError } from "./api.js";
import { button, element, setClass, setText, SIGNS } from "./elements.js";
import type { Tone } from "./words.js";

/** The role that a refused call wants; null where it failed otherwise. */
function roleWanted(error: unknown): string | null {
  return error instanceof CallError ? error.neededRole : null;
}

/** A line that says how something ended. */
export class Notice {
  readonly root = element("p", { class: "notice", role: "status" });

  say(tone: Tone, text: string): void {
    setClass(this.root, `notice ${tone}`);
    setText(this.root, tone === "none" ? text : `${SIGNS[tone]} ${text}`);
  }

  clear(): void {
    this.say("none", "");
  }

  /** What went wrong. */
  fail(error: unknown): void {
    const role = roleWanted(error);
    if (role !== null) this.say("bad", `This needs the role ${role}.`);
    else
      this.say(
        "bad",
        `It was not done: ${error instanceof Error ? error.message : String(error)}.`,
      );
  }
}

/** Runs `call` when pressed; it returns what to say, or null when it was not to be. */
export function actionButton(
  text: string,
  notice: Notice,
  call: () => Promise<string | null>,
  kind = "",
): HTMLButtonElement {
  const run = async (): Promise<void> => {
    made.disabled = true;
    try {
      const said = await call();
      if (said !== null) notice.say("good", said);
    } catch (error) {
      notice.fail(error);
      const role = roleWanted(error);
      if (role !== null) {
        setText(made, `${text} (needs ${role})`);
        return;
      }
    }
    made.disabled = false;
    // Whatever was asked meanwhile is gone, and the focus with it.
    if (document.activeElement === document.body) made.focus();
  };
  const made = button(text, () => void run(), kind);
  return made;
}
