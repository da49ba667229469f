/**
 * A bounded memory of something by group and log index: the newest `size` indexes of each group.
 *
 * Invariant: what lies below the window is forgotten, and said to be.
 */
export const WINDOW_SIZE = 50_000;

export class IndexWindow<T> {
  private readonly groups = new Map<number, { readonly byIndex: Map<number, T>; first: number }>();

  constructor(private readonly size = WINDOW_SIZE) {}

  get(group: number, index: number): T | undefined {
    return this.groups.get(group)?.byIndex.get(index);
  }

  set(group: number, index: number, value: T): void {
    let window = this.groups.get(group);
    if (window === undefined) {
      window = { byIndex: new Map(), first: index };
      this.groups.set(group, window);
    }
    if (index < window.first) return;
    window.byIndex.set(index, value);
    while (window.byIndex.size > this.size) window.byIndex.delete(window.first++);
  }
}
