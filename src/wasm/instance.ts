/**
 * Opens the compiled kernels: decodes the embedded binary, compiles it once, and instantiates it
 * synchronously.
 *
 * Owns the compiled modules.
 *
 * Invariants: 1. The only import is `abort`, which throws. 2. Each instance has a memory of its
 * own, of the fixed size. 3. The addresses compiled into the binary are those of layout.ts.
 */
import { assert } from "../base/assert.js";
import type { KernelExports, KernelInstance } from "./exports.js";
import { areas, memoryBytes } from "./layout.js";

/** A compiled module as the build embeds it. */
export interface KernelBinary {
  readonly base64: string;
  /** Of the decoded bytes, in hexadecimal. */
  readonly sha256: string;
  /** True if assertions are compiled in. */
  readonly checked: boolean;
}

interface Module {
  readonly brand?: "module";
}

interface CompiledExports extends KernelExports {
  readonly memory: { readonly buffer: ArrayBuffer };
  /** Fills the tables; returns the address behind the last area. */
  prepare(): number;
}

/**
 * The part of the engine's WebAssembly that is used here; the floor compiles without platform
 * types.
 */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => Module;
  readonly Instance: new (
    module: Module,
    imports: { env: { abort: (message: number, file: number, line: number) => void } },
  ) => { readonly exports: CompiledExports };
};

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** Decodes standard base64 with padding. */
export function decodeBase64(text: string): Uint8Array {
  const values = new Uint8Array(128);
  for (let at = 0; at < alphabet.length; at++) values[alphabet.charCodeAt(at)] = at;
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const bytes = new Uint8Array((text.length / 4) * 3 - padding);
  let out = 0;
  for (let at = 0; at < text.length; at += 4) {
    const value = (shift: number): number => values[text.charCodeAt(at + shift)] as number;
    const group = (value(0) << 18) | (value(1) << 12) | (value(2) << 6) | value(3);
    // A typed array ignores what is stored behind its end, which is the padding.
    bytes[out++] = group >>> 16;
    bytes[out++] = group >>> 8;
    bytes[out++] = group;
  }
  return bytes;
}

const compiled = new Map<string, Module>();

function moduleOf(binary: KernelBinary): Module {
  const known = compiled.get(binary.sha256);
  if (known !== undefined) return known;
  const module = new WebAssembly.Module(decodeBase64(binary.base64));
  compiled.set(binary.sha256, module);
  return module;
}

/**
 * A new compiled instance. Throws when the binary cannot be instantiated, which is a broken build.
 */
export function openBinary(binary: KernelBinary): KernelInstance {
  const instance = new WebAssembly.Instance(moduleOf(binary), {
    env: {
      abort: (_message, _file, line) => {
        throw new Error(`assertion in kernel source line ${String(line)}`);
      },
    },
  });
  const { exports } = instance;
  assert(exports.memory.buffer.byteLength === memoryBytes, "compiled memory has the fixed size");
  assert(exports.prepare() === areas.regions, "compiled addresses are those of the layout");
  return { exports, memory: exports.memory.buffer, checked: binary.checked };
}
