/** Chromium without a window, driven through its own protocol over pipes; for tests of pages. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import type { TestContext } from 'node:test';

/** Where Chromium is installed; null where it is not. */
export const chromium: string | null =
  ['chromium', 'chromium-browser', 'google-chrome']
    .flatMap((name) => (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, name)))
    .find((file) => existsSync(file)) ?? null;

interface Message {
  readonly id?: number;
  readonly method?: string;
  // biome-ignore lint/suspicious/noExplicitAny: the protocol has hundreds of shapes
  readonly params?: any;
  // biome-ignore lint/suspicious/noExplicitAny: the protocol has hundreds of shapes
  readonly result?: any;
  readonly error?: { readonly message: string };
}

export interface Look {
  readonly width: number;
  readonly scheme: 'light' | 'dark';
}

export interface OpenPage {
  /** Opens the file, and returns when it is drawn. */
  open(url: string, look: Look): Promise<void>;
  /** The value of an expression within the page, of a promise what it resolves to. */
  evaluate<T>(expression: string): Promise<T>;
  /** URLs that were asked for, and what was written to the console, so far. */
  readonly requested: readonly string[];
  readonly complaints: readonly string[];
}

/** Ends with the test. */
export async function openBrowser(t: TestContext): Promise<OpenPage> {
  const profile = await mkdtemp(join(tmpdir(), 'skilltrace-chromium-'));
  // A container's root may not use the sandbox, and nothing foreign is opened here.
  const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--remote-debugging-pipe'];
  const child = spawn(chromium as string, [...flags, `--user-data-dir=${profile}`], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
  });
  // One hook for both steps, because hooks run in the order of their registration.
  t.after(async () => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    await rm(profile, { recursive: true, force: true, maxRetries: 10 });
  });
  return pageOf(connect(child));
}

/** Sends commands, hears events. */
interface Connection {
  // biome-ignore lint/suspicious/noExplicitAny: the protocol has hundreds of shapes
  send(method: string, params?: object, sessionId?: string): Promise<any>;
  on(listener: (message: Message) => void): void;
}

function connect(child: ChildProcess): Connection {
  const [writer, reader] = [child.stdio[3] as Writable, child.stdio[4] as Readable];
  const waiting = new Map<number, { settle: (result: unknown) => void; fail: (error: Error) => void }>();
  const listeners: ((message: Message) => void)[] = [];
  let last = 0;
  let rest = '';
  const hear = (message: Message): void => {
    for (const listener of listeners) listener(message);
    const asked = waiting.get(message.id ?? 0);
    if (message.error !== undefined) asked?.fail(new Error(message.error.message));
    else asked?.settle(message.result);
  };
  reader.setEncoding('utf8').on('data', (text: string) => {
    const messages = (rest + text).split('\0');
    rest = messages.pop() ?? '';
    for (const message of messages) hear(JSON.parse(message));
  });
  child.once('exit', () => {
    for (const { fail } of waiting.values()) fail(new Error('Chromium has ended'));
  });
  return {
    send: (method, params = {}, sessionId) =>
      new Promise((settle, fail) => {
        waiting.set(++last, { settle, fail });
        writer.write(`${JSON.stringify({ id: last, method, params, sessionId })}\0`);
      }),
    on: (listener) => {
      listeners.push(listener);
    },
  };
}

async function pageOf(connection: Connection): Promise<OpenPage> {
  const { targetId } = await connection.send('Target.createTarget', { url: 'about:blank' });
  const { sessionId } = await connection.send('Target.attachToTarget', { targetId, flatten: true });
  const send = (method: string, params: object = {}) => connection.send(method, params, sessionId);
  const requested: string[] = [];
  const complaints: string[] = [];
  let drawn = (): void => undefined;
  connection.on(({ method, params }) => {
    if (method === 'Network.requestWillBeSent') requested.push(params.request.url);
    if (method === 'Log.entryAdded') complaints.push(params.entry.text);
    if (method === 'Runtime.exceptionThrown') complaints.push(params.exceptionDetails.text);
    if (method === 'Runtime.consoleAPICalled' && params.type !== 'log')
      complaints.push(`${params.type}: ${params.args[0]?.value}`);
    if (method === 'Page.loadEventFired') drawn();
  });
  for (const domain of ['Page', 'Network', 'Log', 'Runtime']) await send(`${domain}.enable`);
  return {
    requested,
    complaints,
    open: async (url, { width, scheme }) => {
      const size = { width, height: 900, deviceScaleFactor: 1, mobile: false };
      await send('Emulation.setDeviceMetricsOverride', size);
      const features = [{ name: 'prefers-color-scheme', value: scheme }];
      await send('Emulation.setEmulatedMedia', { features });
      const loaded = new Promise<void>((resolve) => {
        drawn = resolve;
      });
      await send('Page.navigate', { url });
      await loaded;
    },
    evaluate: async (expression) => {
      const { result, exceptionDetails } = await send('Runtime.evaluate', {
        expression,
        returnByValue: true,
        awaitPromise: true,
      });
      if (exceptionDetails !== undefined) throw new Error(exceptionDetails.exception.description);
      return result.value;
    },
  };
}
