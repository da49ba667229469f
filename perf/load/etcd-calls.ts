/**
 * The load driver's unary calls to etcd: one connection, a fixed number of slots, each of which
 * begins its next call when the last one is answered.
 *
 * Owns its connection. Invariants: 1. The latency of an operation is from its first call to the
 * answer that confirms it. 2. A call without a whole message as answer is an error, and its slot
 * goes on.
 */
import { type EtcdKind, type EtcdSlot, etcdSlot, rangeCall } from "./etcd-items.js";
import { type Options, headersFor } from "./grpc-options.js";
import { MessageCutter, type Tally } from "./grpc-tally.js";
import { type HeaderFields, LeanConnection } from "./lean-http2.js";

interface OpenCall {
  readonly slot: number;
  readonly cutter: MessageCutter;
  message: Buffer | null;
}

/** Begins the load of one connection; returns what ends it. */
export async function driveEtcd(
  settings: Options,
  kind: EtcdKind,
  prefix: string,
  slots: number,
  tally: Tally,
): Promise<() => void> {
  const { objects, valueBytes, host, port, tls, holdMs } = settings;
  const own: EtcdSlot[] = Array.from({ length: slots }, (_, slot) =>
    etcdSlot(kind, slot, objects, prefix, valueBytes),
  );
  const beganMs = new Float64Array(slots);
  const calls = new Map<number, OpenCall>();
  const headers = new Map<string, HeaderFields>();
  const isHandedOn = kind === "etcd-handoff";
  let stopped = false;
  const send = (slot: number, isNew: boolean): void => {
    if (isHandedOn && own[slot]?.isHolder === true) tally.released(performance.now());
    const { path, body } = (own[slot] as EtcdSlot).next();
    let block = headers.get(path);
    if (block === undefined) {
      block = headersFor(settings, path);
      headers.set(path, block);
    }
    if (isNew) beganMs[slot] = performance.now();
    const stream = connection.call(block, body);
    calls.set(stream, { slot, cutter: new MessageCutter(), message: null });
  };
  const connection = await LeanConnection.open(host, port, tls, {
    onData: (stream, bytes) => {
      const call = calls.get(stream);
      if (call === undefined) return;
      for (const message of call.cutter.messages(bytes)) call.message = message;
    },
    onEnd: (stream) => {
      const call = calls.get(stream);
      if (call === undefined || stopped) return;
      calls.delete(stream);
      const { slot, message } = call;
      const outcome = message === null ? null : (own[slot] as EtcdSlot).answered(message);
      if (message === null) tally.errors += 1;
      if (outcome !== null) tally.answered(outcome, performance.now() - (beganMs[slot] ?? 0));
      const isHeld = isHandedOn && outcome !== null && own[slot]?.isHolder === true;
      if (isHeld) tally.granted(performance.now());
      if (!isHeld || holdMs === 0) return send(slot, outcome !== null || message === null);
      setTimeout(() => {
        send(slot, true);
        connection.flush();
      }, holdMs);
    },
    onClose: () => {
      if (!stopped) tally.errors += 1;
    },
  });
  for (let slot = 0; slot < slots; slot++) send(slot, true);
  connection.flush();
  return (): void => {
    stopped = true;
    connection.close();
  };
}

/** True when the node at `port` of this machine answers a linearizable read within a second. */
export async function etcdAnswers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    let connection: LeanConnection | null = null;
    const finish = (answers: boolean): void => {
      clearTimeout(timer);
      connection?.close();
      resolve(answers);
    };
    const timer = setTimeout(() => finish(false), 1000);
    const handlers = {
      onData: (): void => finish(true),
      onEnd: (): void => finish(false),
      onClose: (): void => finish(false),
    };
    const at = { host: "127.0.0.1", port, tls: false, token: "" };
    LeanConnection.open(at.host, port, false, handlers).then(
      (opened) => {
        connection = opened;
        const { path, body } = rangeCall("perf/ready");
        opened.call(headersFor(at, path), body);
        opened.flush();
      },
      () => finish(false),
    );
  });
}
