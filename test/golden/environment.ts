/**
 * The world of one scenario: nodes, the messages in flight, and the output of the command at work.
 *
 * Nothing here runs by itself. Invariants: 1. Messages are never lost, doubled or reordered unless
 * a command says so.
 */
import { formatMessage } from "./print.js";
import type { HarnessNode, Work } from "./node.js";
import { isLocal, type WireMessage } from "./wire.js";

/** A command that fails; its text becomes part of the output. */
export class CommandError extends Error {}

export interface Recipient {
  readonly id: number;
  readonly drop: boolean;
}

export class Environment {
  readonly nodes: HarnessNode[] = [];
  messages: WireMessage[] = [];
  /** Whether traces are printed; failures always are. */
  printing = true;
  private buffer = "";

  node(id: number): HarnessNode {
    const node = this.nodes[id - 1];
    if (node === undefined) throw new CommandError(`no node ${id}`);
    return node;
  }

  write(text: string): void {
    if (this.printing) this.buffer += text;
  }

  /** What the command at work printed so far; empties the buffer. */
  takeOutput(): string {
    const output = this.buffer;
    this.buffer = "";
    return output;
  }

  /** Prints a header and then, indented, whatever `work` prints. */
  under(header: string, work: () => void): void {
    this.write(`> ${header}\n`);
    const outside = this.buffer;
    this.buffer = "";
    try {
      work();
    } finally {
      const lines = this.buffer.split("\n");
      if (lines.at(-1) === "") lines.pop();
      this.buffer = outside + lines.map((line) => `  ${line}\n`).join("");
    }
  }

  private finish(work: Work): void {
    this.messages.push(...work.messages);
  }

  handleReady(node: HarnessNode): void {
    const work = node.handleReady((text) => this.write(text));
    this.finish(work);
  }

  processAppend(node: HarnessNode): void {
    this.finish(node.processAppend((text) => this.write(text)));
  }

  processApply(node: HarnessNode): void {
    this.finish(node.processApply((text) => this.write(text)));
  }

  /**
   * Takes messages out of the pool: those to `id`, of one type if given, and without local ones if
   * they get lost.
   */
  private takeMessages(recipient: Recipient, type: string | null): WireMessage[] {
    const taken: WireMessage[] = [];
    this.messages = this.messages.filter((message) => {
      const wanted = message.to === recipient.id && (type === null || message.type === type);
      if (!wanted || (recipient.drop && isLocal(message))) return true;
      taken.push(message);
      return false;
    });
    return taken;
  }

  /** Delivers or drops. Returns how many messages that were. */
  deliver(recipients: readonly Recipient[], type: string | null): number {
    let count = 0;
    for (const recipient of recipients) {
      const taken = this.takeMessages(recipient, type);
      count += taken.length;
      for (const message of taken) {
        this.write(`${recipient.drop ? "dropped: " : ""}${formatMessage(message)}\n`);
        if (recipient.drop) continue;
        const error = this.node(recipient.id).step(message);
        if (error !== null) this.write(`${error}\n`);
      }
    }
    return count;
  }

  private hasMessages(id: number): boolean {
    return this.messages.some((message) => message.to === id);
  }

  /** Runs the nodes until none of them has anything left to do. */
  stabilize(nodes: readonly HarnessNode[]): void {
    for (let busy = true; busy;) {
      busy = false;
      for (const node of nodes) {
        if (!node.core.hasEffects()) continue;
        busy = true;
        this.under(`${node.id} handling Ready`, () => this.handleReady(node));
      }
      for (const node of nodes) {
        if (!this.hasMessages(node.id)) continue;
        busy = true;
        this.under(`${node.id} receiving messages`, () => {
          this.deliver([{ id: node.id, drop: false }], null);
        });
      }
      for (const node of nodes) {
        if (node.appendQueue.length === 0) continue;
        busy = true;
        this.under(`${node.id} processing append thread`, () => {
          while (node.appendQueue.length > 0) this.processAppend(node);
        });
      }
      for (const node of nodes) {
        if (node.applyQueue.length === 0) continue;
        busy = true;
        this.under(`${node.id} processing apply thread`, () => {
          while (node.applyQueue.length > 0) this.processApply(node);
        });
      }
    }
  }
}
