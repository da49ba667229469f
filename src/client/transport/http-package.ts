/** The HTTP package: loaded once for all clients of this process, when a first one needs it. */
type Undici = typeof import("undici");

let loading: Promise<Undici> | null = null;

export function loadUndici(): Promise<Undici> {
  loading ??= import("undici");
  return loading;
}
