/**
 * A small curve of figures over the last minutes.
 *
 * Invariants: 1. What the curve says its words say too.
 */
import { drawing, element, setText } from "./elements.js";
import type { Sample } from "./figures.js";
import { duration } from "./words.js";

const WIDTH = 240;
const HEIGHT = 48;
/** The curve grows into this, and is then as wide as there are figures. */
const SPAN_MIN_MS = 30_000;

export class Sparkline {
  readonly root: HTMLElement;
  private readonly line = drawing("polyline", { class: "line" });
  private readonly area = drawing("polygon", { class: "area" });
  private readonly now = element("strong", {}, "–");
  private readonly rest = element("span", { class: "muted" }, "");

  constructor(
    title: string,
    private readonly show: (value: number) => string,
  ) {
    const viewBox = `0 0 ${WIDTH} ${HEIGHT}`;
    const shape = { viewBox, preserveAspectRatio: "none", "aria-hidden": "true" };
    const picture = drawing("svg", { ...shape, class: "sparkline" }, this.area, this.line);
    const head = element("h3", {}, title);
    const words = element("p", {}, this.now, " ", this.rest);
    this.root = element("div", { class: "card figure" }, head, picture, words);
  }

  update(samples: readonly Sample[]): void {
    const last = samples.at(-1);
    if (last === undefined) return;
    const spanMs = Math.max(SPAN_MIN_MS, last.atMs - (samples[0]?.atMs ?? last.atMs));
    const top = Math.max(1, ...samples.map(({ value }) => value));
    const points = samples.map(({ atMs, value }) => {
      const x = WIDTH - ((last.atMs - atMs) / spanMs) * WIDTH;
      const y = HEIGHT - 2 - (value / top) * (HEIGHT - 6);
      return `${x.toFixed(1)},${y.toFixed(1)}`;
    });
    this.line.setAttribute("points", points.join(" "));
    const first = points[0]?.split(",")[0] ?? "0";
    this.area.setAttribute("points", `${first},${HEIGHT} ${points.join(" ")} ${WIDTH},${HEIGHT}`);
    const highest = Math.max(...samples.map(({ value }) => value));
    const seen = duration(last.atMs - (samples[0]?.atMs ?? last.atMs));
    setText(this.now, this.show(last.value));
    setText(this.rest, `highest ${this.show(highest)} in ${seen}`);
  }
}
