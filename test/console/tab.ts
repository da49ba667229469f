/**
 * One tab: what somebody who sits before it does and sees, and what it did behind their back.
 *
 * Invariants: 1. Clicks and keys are those of a mouse and a keyboard: what lies under something else, or cannot be reached, is
 * not pressed. 2. Every wait has an end, and then says what was there instead. 3. All requests, reports of the policy and
 * errors of scripts are remembered from the first moment on.
 */
import type { Listen, Members } from "./browser.js";

const WAIT_MAX_MS = 20_000;
const LOOK_MS = 25;

interface Session {
  send(method: string, params?: Members): Promise<Members>;
  listen(listener: Listen): void;
  close(): Promise<void>;
}

/** Keys that are no characters, as the protocol wants them. */
const KEYS: Readonly<Record<string, Members>> = {
  Tab: { key: "Tab", code: "Tab", windowsVirtualKeyCode: 9 },
  Enter: { key: "Enter", code: "Enter", windowsVirtualKeyCode: 13, text: "\r" },
  Escape: { key: "Escape", code: "Escape", windowsVirtualKeyCode: 27 },
  " ": { key: " ", code: "Space", windowsVirtualKeyCode: 32, text: " " },
};
const SHIFT = 8;

/** Runs before any script of a page. */
const BEFORE = `
  window.policyReports = [];
  document.addEventListener("securitypolicyviolation", (event) => {
    window.policyReports.push(event.violatedDirective + " " + event.blockedURI);
  });
`;

export class Tab {
  /** Addresses of all requests. */
  readonly requests: string[] = [];
  /** Exceptions that nobody caught, and errors on the console of the browser. */
  readonly errors: string[] = [];
  /** Requests under way, and the most that were. */
  private readonly open = new Set<string>();
  mostOpen = 0;
  private answered = "";

  private constructor(private readonly session: Session) {}

  static async of(session: Session): Promise<Tab> {
    const tab = new Tab(session);
    session.listen((method, params) => tab.hear(method, params));
    for (const domain of ["Page", "Runtime", "Network", "Log"]) {
      await session.send(`${domain}.enable`);
    }
    await session.send("Page.addScriptToEvaluateOnNewDocument", { source: BEFORE });
    await tab.size(1280, 900);
    return tab;
  }

  private hear(method: string, params: Members): void {
    const id = String(params["requestId"]);
    if (method === "Network.requestWillBeSent") {
      const { url } = params["request"] as { readonly url: string };
      this.requests.push(url);
      if (/\/v1\/|\/metrics/.test(url)) this.open.add(id);
      this.mostOpen = Math.max(this.mostOpen, this.open.size);
    } else if (method === "Network.loadingFinished" || method === "Network.loadingFailed") {
      this.open.delete(id);
    } else if (method === "Runtime.exceptionThrown") {
      this.errors.push(JSON.stringify(params["exceptionDetails"]));
    } else if (method === "Fetch.requestPaused") void this.answer(params);
  }

  private async answer({ requestId }: Members): Promise<void> {
    const body = Buffer.from(this.answered).toString("base64");
    const headers = [{ name: "content-type", value: "application/json" }];
    const fulfilled = { requestId, responseCode: 200, responseHeaders: headers, body };
    await this.session.send("Fetch.fulfillRequest", fulfilled);
  }

  /** From now on requests to these are answered with `body`, not by a node. */
  async answerWith(patterns: readonly string[], body: string): Promise<void> {
    this.answered = body;
    const asked = patterns.map((urlPattern) => ({ urlPattern }));
    await this.session.send("Fetch.enable", { patterns: asked });
  }

  async size(width: number, height: number): Promise<void> {
    const metrics = { width, height, deviceScaleFactor: 1, mobile: false };
    await this.session.send("Emulation.setDeviceMetricsOverride", metrics);
  }

  async colours(scheme: "light" | "dark"): Promise<void> {
    const features = [{ name: "prefers-color-scheme", value: scheme }];
    await this.session.send("Emulation.setEmulatedMedia", { features });
  }

  /** What an expression is worth in the page. */
  async value<T>(expression: string): Promise<T> {
    const asked = { expression, returnByValue: true, awaitPromise: true };
    const { result, exceptionDetails } = (await this.session.send("Runtime.evaluate", asked)) as {
      readonly result: { readonly value: T };
      readonly exceptionDetails?: { readonly exception?: { readonly description?: string } };
    };
    if (exceptionDetails !== undefined) {
      throw new Error(exceptionDetails.exception?.description ?? "the page threw");
    }
    return result.value;
  }

  /** Waits until an expression is true. */
  async until(expression: string, what = expression): Promise<void> {
    const deadline = performance.now() + WAIT_MAX_MS;
    for (;;) {
      try {
        if (await this.value<boolean>(`Boolean(${expression})`)) return;
      } catch {
        // The page is just being replaced.
      }
      if (performance.now() > deadline) {
        throw new Error(`not seen: ${what}\n${await this.value("document.body.innerText")}`);
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }

  /** Waits until this text can be read. */
  sees(text: string): Promise<void> {
    return this.until(`document.body.innerText.includes(${JSON.stringify(text)})`, text);
  }

  text(selector = "main"): Promise<string> {
    return this.value(`document.querySelector(${JSON.stringify(selector)})?.innerText ?? ""`);
  }

  async go(url: string): Promise<void> {
    await this.session.send("Page.navigate", { url });
    await this.until(`location.href.startsWith(${JSON.stringify(url)})`);
  }

  /** The first that can be seen of what a selector names, with this beginning of its text. */
  private static found(selector: string, text: string): string {
    const wanted = JSON.stringify(text);
    return (
      `[...document.querySelectorAll(${JSON.stringify(selector)})].find((one) => ` +
      `one.checkVisibility() && one.textContent.startsWith(${wanted}))`
    );
  }

  async click(selector: string, text = ""): Promise<void> {
    const one = Tab.found(selector, text);
    await this.until(`${one} && !${one}.disabled`, `${selector} "${text}" that can be pressed`);
    const [x, y, isOnTop] = await this.value<[number, number, boolean]>(`(() => {
      const one = ${one};
      one.scrollIntoView({ block: "center" });
      const { x, y, width, height } = one.getBoundingClientRect();
      const at = [x + Math.min(width / 2, 40), y + height / 2];
      return [...at, one.contains(document.elementFromPoint(...at))];
    })()`);
    if (!isOnTop) throw new Error(`${selector} "${text}" lies under something else`);
    for (const type of ["mousePressed", "mouseReleased"]) {
      const event = { type, x, y, button: "left", clickCount: 1 };
      await this.session.send("Input.dispatchMouseEvent", event);
    }
  }

  /** Types into the field with this label, in place of what is there. */
  async enter(label: string, text: string): Promise<void> {
    await this.until(Tab.found("label", label), `a field ${label}`);
    await this.value(`(() => {
      const field = document.getElementById(${Tab.found("label", label)}.htmlFor);
      field.focus();
      field.select?.();
    })()`);
    if (text === "") await this.press("Backspace");
    else await this.type(text);
  }

  async choose(label: string, text: string): Promise<void> {
    await this.value(`(() => {
      const field = document.getElementById(${Tab.found("label", label)}.htmlFor);
      field.value = [...field.options].find((one) => one.text === ${JSON.stringify(text)}).value;
    })()`);
  }

  /** Types where the focus is. */
  async type(text: string): Promise<void> {
    await this.session.send("Input.insertText", { text });
  }

  async press(name: string, withShift = false): Promise<void> {
    const modifiers = withShift ? SHIFT : 0;
    const key = KEYS[name] ?? { key: name, code: name, windowsVirtualKeyCode: 8 };
    const isText = "text" in key;
    const down = { type: isText ? "keyDown" : "rawKeyDown", modifiers, ...key };
    await this.session.send("Input.dispatchKeyEvent", down);
    await this.session.send("Input.dispatchKeyEvent", { type: "keyUp", modifiers, ...key });
  }

  /** What has the focus: its text, or its label. */
  focused(): Promise<string> {
    return this.value(`(() => {
      const one = document.activeElement;
      return one?.labels?.[0]?.textContent ?? one?.textContent ?? "";
    })()`);
  }

  /** What the policy refused since this page was loaded. */
  refusals(): Promise<readonly string[]> {
    return this.value("window.policyReports");
  }

  async picture(): Promise<Buffer> {
    const { data } = await this.session.send("Page.captureScreenshot", { format: "png" });
    return Buffer.from(data as string, "base64");
  }

  /** What assistive software is told of everything that can be operated, by its role. */
  async operable(): Promise<readonly { readonly role: string; readonly name: string }[]> {
    interface Told {
      readonly ignored: boolean;
      readonly role?: { readonly value: string };
      readonly name?: { readonly value: string };
    }
    const { nodes } = (await this.session.send("Accessibility.getFullAXTree")) as {
      readonly nodes: readonly Told[];
    };
    return nodes
      .filter(({ ignored }) => !ignored)
      .map(({ role, name }) => ({ role: role?.value ?? "", name: name?.value ?? "" }));
  }

  close(): Promise<void> {
    return this.session.close();
  }
}
