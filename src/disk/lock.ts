/**
 * An exclusive lock on a directory that the kernel releases when its holder dies, however it dies.
 *
 * A listening socket is such a lock: its name can be bound once. Two names are bound: an abstract
 * one (Linux; derived from device and inode of the directory, gone with the process), and a socket
 * file in the directory, which is also seen across containers that share the directory but not the
 * network namespace. A socket file that nobody answers on is left over from a crash and is taken
 * over: only that very file is removed, and whoever took it over looks once more whether the name
 * is still its own, because others may find the same file left over at the same time.
 *
 * Owns the two sockets. Invariants: 1. Nobody who holds the lock loses it while it lives. 2. A
 * directory path too long for a socket file has the abstract name only.
 */
import * as fs from "node:fs";
import * as net from "node:net";
import { type Result, failure, ok } from "../base/result.js";

export interface DirectoryLock {
  release(done: () => void): void;
}

/** "storage-in-use": another process, or another part of this one, holds it. */
export type LockCode = "storage-in-use" | "storage-unreadable";

const SOCKET_NAME = "lock.sock";
/** sockaddr_un holds 108 bytes on Linux and 104 elsewhere, the closing zero included. */
const SOCKET_PATH_MAX_BYTES = 100;
/** Others that found the same file left over have removed it by then, if they do (ms). */
const SETTLE_MS = 100;

/** Locks the existing directory `path`. */
export function lockDirectory(
  path: string,
  done: (result: Result<DirectoryLock, LockCode>) => void,
): void {
  let names: string[];
  try {
    const { dev, ino } = fs.statSync(path);
    const abstract = `\0svc-storage-${String(dev)}-${String(ino)}`;
    const file = `${fs.realpathSync(path)}/${SOCKET_NAME}`;
    const isShort = Buffer.byteLength(file) <= SOCKET_PATH_MAX_BYTES;
    names = [...(process.platform === "linux" ? [abstract] : []), ...(isShort ? [file] : [])];
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    setImmediate(() => done(failure("storage-unreadable", `cannot lock ${path}: ${why}`)));
    return;
  }
  const held: net.Server[] = [];
  const release = (next: () => void): void => {
    const server = held.pop();
    if (server === undefined) return next();
    server.close(() => release(next));
  };
  const bindNext = (): void => {
    const name = names.shift();
    if (name === undefined) return done(ok({ release }));
    bindSocket(name, (result) => {
      if (!result.ok) {
        const message = result.code === "storage-in-use" ? inUse(path) : result.message;
        return release(() => done(failure(result.code, message)));
      }
      held.push(result.value);
      bindNext();
    });
  };
  bindNext();
}

function inUse(path: string): string {
  return `${path} is in use by another server: stop that one, or give this one its own path`;
}

type BindDone = (result: Result<net.Server, LockCode>) => void;

/** Binds one name; exported for tests, which cannot have two network namespaces. */
export function bindSocket(name: string, done: BindDone): void {
  const isFile = !name.startsWith("\0");
  listen(name, (server, error) => {
    if (server !== null) return done(ok(server));
    if (error?.code !== "EADDRINUSE") {
      return done(failure("storage-unreadable", `cannot lock ${name.slice(1)}: ${String(error)}`));
    }
    if (!isFile) return done(failure("storage-in-use", ""));
    const left = fileIdentity(name);
    answers(name, (alive) => {
      if (alive) return done(failure("storage-in-use", ""));
      takeOver(name, left, done);
    });
  });
}

/** Takes the name of a socket file that nobody answers on, unless others did meanwhile. */
function takeOver(name: string, left: string, done: BindDone): void {
  if (left !== "" && fileIdentity(name) === left) fs.rmSync(name, { force: true });
  listen(name, (server) => {
    if (server === null) return done(failure("storage-in-use", ""));
    const own = fileIdentity(name);
    setTimeout(() => {
      if (fileIdentity(name) === own) return done(ok(server));
      // Not closed: that would remove the name, which is another's now. It goes with the process.
      done(failure("storage-in-use", ""));
    }, SETTLE_MS);
  });
}

/** Tells one file from another that has its name later; "" when there is none. */
function fileIdentity(path: string): string {
  try {
    const { ino, ctimeNs } = fs.statSync(path, { bigint: true });
    return `${String(ino)} ${String(ctimeNs)}`;
  } catch {
    return "";
  }
}

function listen(
  name: string,
  done: (server: net.Server | null, error: NodeJS.ErrnoException | null) => void,
): void {
  const server = net.createServer((socket) => socket.destroy());
  server.once("error", (error) => done(null, error));
  server.listen(name, () => {
    server.removeAllListeners("error");
    // A visitor that breaks off is nobody's concern.
    server.on("error", () => undefined);
    server.unref();
    done(server, null);
  });
}

/** True when somebody listens on the socket file. */
function answers(path: string, done: (alive: boolean) => void): void {
  const socket = net.connect(path);
  socket.once("connect", () => {
    socket.destroy();
    done(true);
  });
  socket.once("error", (error: NodeJS.ErrnoException) => {
    socket.destroy();
    done(error.code !== "ECONNREFUSED" && error.code !== "ENOENT");
  });
}
