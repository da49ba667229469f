/** Backups: what there is, what goes on, how one follows another; taking one, and what would go. */
import { actionButton, Notice } from "../parts/action.js";
import { CallError } from "../parts/api.js";
import { confirmed } from "../parts/confirmation.js";
import { element, fill, setText } from "../parts/elements.js";
import type { Context, Page } from "../parts/page.js";
import type { Backup, Collection, RunningBackup } from "../parts/shapes.js";
import { type Cell, Table } from "../parts/table.js";
import { bytes, count, duration, plural, printable } from "../parts/words.js";

/** A backup takes what it takes; the node bounds it. */
const TAKING_MAX_MS = 30 * 60 * 1000;
const LIST_EVERY_MS = 10_000;

function stateOf({ isInvalid, isIncomplete, invalidReason }: Backup): Cell {
  if (isInvalid) return { text: printable(invalidReason ?? "damaged"), tone: "bad" };
  return isIncomplete ? { text: "incomplete", tone: "warn" } : { text: "whole", tone: "good" };
}

function chainTable(open: ((backup: Backup) => void) | null, caption: string): Table<Backup> {
  const identity = ({ backupId }: Backup): Cell => ({ text: printable(backupId), isName: true });
  return new Table<Backup>(
    caption,
    [
      {
        title: "Backup",
        cell: (backup) =>
          open === null ? identity(backup) : { ...identity(backup), run: () => open(backup) },
      },
      { title: "State", cell: stateOf },
      { title: "Kind", cell: ({ actualKind, type }) => printable(actualKind ?? type) },
      { title: "Taken (UTC)", cell: ({ createdAtUtc }) => printable(createdAtUtc) },
      { title: "Builds on", cell: (b) => printable(b.parentBackupId ?? "–") },
      { title: "Partitions", isNumber: true, cell: (b) => count(b.partitionCount) },
    ],
    ({ backupId }) => backupId,
    "There is no backup.",
  );
}

function collectionView({ bytesReclaimed, ...lists }: Collection): HTMLElement {
  const { retentionDeletions, orphanReclamations } = lists;
  const lines = [
    ...retentionDeletions.map(
      (one) => `${one.backupId}: ${one.reason}, ${bytes(Number(one.bytes))}`,
    ),
    ...orphanReclamations.map(({ name, reason }) => `${name}: ${reason}`),
  ];
  const size = bytes(Number(bytesReclaimed));
  const said = `A collection would remove ${plural(lines.length, "thing")} and free ${size}.`;
  return element(
    "section",
    {},
    element("h2", {}, "What a collection would remove"),
    element("p", {}, said),
    element("ul", {}, ...lines.map((line) => element("li", {}, printable(line)))),
  );
}

class BackupsView {
  readonly root: HTMLElement;
  private readonly notice = new Notice();
  private readonly running = element("p", { class: "muted", role: "status" });
  private readonly opened = element("div");
  private readonly table = chainTable((backup) => void this.openChain(backup), "All backups");
  private listedAtMs = -LIST_EVERY_MS;
  private isRefused = false;

  constructor(private readonly context: Context) {
    const full = this.taker("Take a full backup…", "full");
    const coordinated = this.taker("Take a coordinated one…", "coordinated");
    const dry = actionButton("What would a collection remove?", this.notice, async () => {
      const { api } = this.context;
      const found = await api.post<Collection>("/v1/backups/gc?dryRun=true", null, TAKING_MAX_MS);
      fill(this.opened, collectionView(found));
      return "Nothing was removed.";
    });
    const actions = element("div", { class: "row" }, full, coordinated, dry);
    this.root = element(
      "div",
      {},
      actions,
      this.notice.root,
      this.running,
      this.table.root,
      this.opened,
    );
  }

  private taker(text: string, kind: "full" | "coordinated"): HTMLButtonElement {
    return actionButton(text, this.notice, async () => {
      const isSure = await confirmed({
        title: `Take a ${kind} backup?`,
        lines: ["It goes to the backup directory of the cluster and takes disk and network."],
        word: null,
        action: "Take it",
      });
      return isSure ? this.take(`/v1/backups/${kind}`, null) : null;
    });
  }

  private async take(path: string, body: object | null): Promise<string> {
    const taken = await this.context.api.post<Backup>(path, body, TAKING_MAX_MS);
    this.listedAtMs = -LIST_EVERY_MS;
    return `Backup ${printable(taken.backupId)} was taken.`;
  }

  private async openChain({ backupId }: Backup): Promise<void> {
    const table = chainTable(null, "What a restore of it reads, the oldest first");
    const more = actionButton("Take an incremental backup on it…", this.notice, async () => {
      const isSure = await confirmed({
        title: "Take an incremental backup?",
        lines: ["It holds what has changed since", printable(backupId)],
        word: null,
        action: "Take it",
      });
      if (!isSure) return null;
      return this.take("/v1/backups/incremental", { parentBackupId: backupId });
    });
    try {
      const path = `/v1/backups/${encodeURIComponent(backupId)}/chain`;
      table.update(await this.context.api.get<readonly Backup[]>(path));
      const title = element("h2", { tabindex: "-1" }, "Chain of ", printable(backupId));
      fill(this.opened, title, table.root, more);
      title.focus();
    } catch (error) {
      this.notice.fail(error);
    }
  }

  readonly refresh = async (): Promise<void> => {
    // Who may not see backups now will not in two seconds either.
    if (this.isRefused) return;
    const { api } = this.context;
    try {
      const [now] = await api.get<readonly RunningBackup[]>("/v1/backups/running");
      setText(this.running, now === undefined ? "" : progressOf(now));
      if (performance.now() - this.listedAtMs < LIST_EVERY_MS) return;
      this.listedAtMs = performance.now();
      const all = await api.get<readonly Backup[]>("/v1/backups");
      this.table.update([...all].reverse());
    } catch (error) {
      this.isRefused = error instanceof CallError && error.neededRole !== null;
      this.table.root.hidden = this.isRefused;
      this.notice.fail(error);
    }
  };
}

function progressOf(now: RunningBackup): string {
  const of = now.partitionsTotal === 0 ? "" : ` of ${now.partitionsTotal}`;
  const done = `${now.partitionsDone}${of} partitions`;
  return `Under way: ${now.kind}, ${now.phase}, ${done}, for ${duration(now.elapsedMs)}.`;
}

export const BACKUPS: Page = {
  name: "backups",
  title: "Backups",
  open: (context) => new BackupsView(context),
};
