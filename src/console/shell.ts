/**
 * The frame around the pages: navigation, the verdict, who is signed in, and the one loop that asks
 * the node.
 *
 * Invariants: 1. At most one round of questions is under way, the next begins REFRESH_MS after its
 * end, and none begins while nobody can see the page. 2. The verdict is told when it changes, not
 * when it is repeated. 3. Whoever is not known gets the form, and comes back to the same page.
 */
import { Api, CallError } from "./parts/api.js";
import {
  button,
  element,
  fill,
  form,
  labelled,
  setClass,
  setText,
  SIGNS,
} from "./parts/elements.js";
import { History } from "./parts/figures.js";
import type { Context, Page, View } from "./parts/page.js";
import type { Overview } from "./parts/shapes.js";
import { verdictOf } from "./parts/words.js";
import { ABOUT } from "./pages/about.js";
import { BACKUPS } from "./pages/backups.js";
import { KEYS } from "./pages/keys.js";
import { LOCKS } from "./pages/locks.js";
import { METRICS } from "./pages/metrics.js";
import { NODES } from "./pages/nodes.js";
import { OVERVIEW } from "./pages/overview.js";
import { PARTITIONS } from "./pages/partitions.js";
import { RANGES } from "./pages/ranges.js";
import { SEQUENCES } from "./pages/sequences.js";

const REFRESH_MS = 2000;
const PAGES: readonly Page[] = [
  OVERVIEW,
  NODES,
  PARTITIONS,
  RANGES,
  LOCKS,
  SEQUENCES,
  KEYS,
  BACKUPS,
  METRICS,
  ABOUT,
];

export class Shell {
  private readonly api = new Api();
  private readonly history = new History();
  private overview: Overview | null = null;
  private heardMs = performance.now();
  private view: View | null = null;
  private isUnknown = false;
  private timer: number | undefined;
  private isAsking = false;

  private readonly sign = element("span", { class: "sign", "aria-hidden": "true" });
  private readonly words = element("span");
  private readonly verdict = element(
    "p",
    { class: "verdict", role: "status" },
    this.sign,
    this.words,
  );
  private readonly heading = element("h1", { tabindex: "-1" });
  private readonly content = element("div", { class: "content" });
  private readonly account = element("div", { class: "account" });
  private readonly links = new Map<string, HTMLAnchorElement>();

  start(): void {
    this.api.whenUnknown = () => this.askWho();
    const list = element("ul");
    for (const { name, title } of PAGES) {
      const link = element("a", { href: `#/${name}` }, title);
      this.links.set(name, link);
      list.append(element("li", {}, link));
    }
    const skip = element("a", { href: "#content", class: "skip" }, "Skip to the content");
    skip.addEventListener("click", (event) => {
      event.preventDefault();
      this.heading.focus();
    });
    const brand = element("p", { class: "brand" }, "svc", element("small", {}, "console"));
    const side = element(
      "header",
      { class: "side" },
      brand,
      element("nav", { "aria-label": "Pages" }, list),
      this.account,
    );
    const main = element("main", { id: "content" }, this.verdict, this.heading, this.content);
    fill(document.body, skip, side, main);
    window.addEventListener("hashchange", () => this.show(true));
    document.addEventListener("visibilitychange", () => this.schedule(0));
    this.show(false);
    this.schedule(0);
  }

  private get page(): Page {
    const name = location.hash.slice(2);
    return PAGES.find((page) => page.name === name) ?? OVERVIEW;
  }

  /** Opens the page that the address names. */
  private show(isAsked: boolean): void {
    const page = this.page;
    for (const [name, link] of this.links) {
      if (name === page.name) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    document.title = `${page.title} · svc`;
    setText(this.heading, page.title);
    this.showAccount();
    if (this.isUnknown) return this.showForm();
    const context: Context = {
      api: this.api,
      history: this.history,
      overview: () => this.overview,
    };
    this.view = page.open(context);
    fill(this.content, this.view.root);
    if (isAsked) this.heading.focus();
    this.schedule(0);
  }

  private showAccount(): void {
    const leave = button("Sign out", () => {
      this.api.signOut();
      this.overview = null;
      this.show(true);
    });
    fill(this.account, this.api.hasToken ? leave : null);
  }

  /** The node answered 401: whatever is shown now, it is the form that helps. */
  private askWho(): void {
    if (this.isUnknown) return;
    this.isUnknown = true;
    this.overview = null;
    this.showForm();
  }

  private showForm(): void {
    const token = element("input", {
      type: "password",
      autocomplete: "current-password",
      required: true,
    });
    const kept = element("input", { type: "checkbox" });
    const refused = this.api.hasToken ? "The node does not know this token." : "";
    const enter = (): void => {
      this.isUnknown = false;
      this.api.signIn(token.value.trim(), kept.checked);
      this.show(false);
    };
    const keep = element("label", { class: "check" }, kept, " keep it until this tab is closed");
    this.view = null;
    setText(this.heading, "Sign in");
    fill(
      this.content,
      element("p", {}, "This node wants to know who asks. A token stays in this page only."),
      element("p", { class: "notice bad", role: "alert" }, refused),
      form(enter, labelled("Token", token), element("button", { type: "submit" }, "Sign in")),
      keep,
    );
    this.api.signOut();
    this.showAccount();
    token.focus();
  }

  private schedule(delayMs: number): void {
    clearTimeout(this.timer);
    if (document.hidden) return;
    this.timer = window.setTimeout(() => void this.round(), delayMs);
  }

  private async round(): Promise<void> {
    // The round that is under way calls for the next one.
    if (this.isAsking) return;
    if (!this.isUnknown) {
      this.isAsking = true;
      const view = this.view;
      await this.ask();
      if (!this.isUnknown) await view?.refresh?.();
      this.isAsking = false;
      if (view !== this.view) return this.schedule(0);
    }
    this.schedule(REFRESH_MS);
  }

  private async ask(): Promise<void> {
    try {
      this.overview = await this.api.get<Overview>("/v1/cluster/overview");
      this.heardMs = performance.now();
      this.history.take(this.overview);
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      this.overview = null;
    }
    this.showVerdict();
  }

  private showVerdict(): void {
    if (this.isUnknown) {
      setText(this.words, "Not signed in.");
      setText(this.sign, SIGNS.none);
      return setClass(this.verdict, "verdict none");
    }
    const silentMs = Math.floor((performance.now() - this.heardMs) / 10_000) * 10_000;
    const { tone, text } = verdictOf(this.overview, this.overview === null ? silentMs : 0);
    setClass(this.verdict, `verdict ${tone}`);
    setText(this.sign, SIGNS[tone]);
    setText(this.words, text);
  }
}
