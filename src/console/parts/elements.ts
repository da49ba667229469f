/**
 * Elements made and changed: all that touches the document goes through here.
 *
 * Invariants: 1. Text is always set as text; markup is never made of texts. 2. What did not change
 * is not touched, so that focus, selection and what a screen reader reads stay where they are.
 */
import type { Tone } from "./words.js";

export type Child = Node | string | null;
type Value = string | boolean | ((event: Event) => void);

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Readonly<Record<string, Value>> = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false) made.setAttribute(name, value);
  }
  for (const child of children) if (child !== null) made.append(child);
  return made;
}

export function drawing(
  tag: string,
  attributes: Readonly<Record<string, string>>,
  ...children: readonly Node[]
): SVGElement {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export function setText(target: Element, text: string): void {
  if (target.textContent !== text) target.textContent = text;
}

export function setClass(target: Element, name: string): void {
  if (target.getAttribute("class") !== name) target.setAttribute("class", name);
}

/** Shows exactly these. */
export function fill(target: Element, ...children: readonly Child[]): void {
  target.replaceChildren(...children.filter((child) => child !== null));
}

/** A state is a sign and a word, never a colour alone. */
export const SIGNS: Readonly<Record<Tone, string>> = {
  good: "✓",
  warn: "▲",
  bad: "✕",
  none: "·",
};

export function badge(tone: Tone, text: string): HTMLElement {
  const sign = element("span", { class: "sign", "aria-hidden": "true" }, SIGNS[tone]);
  return element("span", { class: `badge ${tone}` }, sign, text);
}

/** A name that somebody gave: its direction concerns nothing around it. */
export function nameOf(text: string): HTMLElement {
  return element("bdi", { class: "name" }, text);
}

export function button(text: string, run: () => void, kind = ""): HTMLButtonElement {
  return element("button", { type: "button", class: kind, click: run }, text);
}

let fields = 0;

/** A control with its label. */
export function labelled(text: string, control: HTMLElement, hint = ""): HTMLElement {
  control.id ||= `field-${++fields}`;
  const small = hint === "" ? null : element("small", { id: `${control.id}-hint` }, hint);
  if (small !== null) control.setAttribute("aria-describedby", small.id);
  return element(
    "div",
    { class: "field" },
    element("label", { for: control.id }, text),
    control,
    small,
  );
}

/** A form whose button does `run`; it never leaves the page. */
export function form(run: () => void, ...children: readonly Child[]): HTMLFormElement {
  const submit = (event: Event): void => {
    event.preventDefault();
    run();
  };
  return element("form", { class: "row", submit, novalidate: true }, ...children);
}

export function select(...choices: readonly (readonly [value: string, text: string])[]) {
  return element(
    "select",
    {},
    ...choices.map(([value, text]) => element("option", { value }, text)),
  );
}

/** Pairs of what and how much. */
export function facts(pairs: readonly (readonly [what: string, value: Child])[]): HTMLElement {
  const list = element("dl", { class: "facts" });
  for (const [what, value] of pairs) {
    list.append(element("div", {}, element("dt", {}, what), element("dd", {}, value)));
  }
  return list;
}
