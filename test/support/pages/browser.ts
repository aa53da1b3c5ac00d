/** Chromium without a window, by playwright-core, which brings no browser of its own; for tests of pages. */
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { after, type TestContext } from 'node:test';
import { type Browser, type ConsoleMessage, type Page, chromium as playwright } from 'playwright-core';

/** Where Chromium is installed; null where it is not. */
export const chromium: string | null =
  ['chromium', 'chromium-browser', 'google-chrome']
    .flatMap((name) => (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, name)))
    .find((file) => existsSync(file)) ?? null;

/** Options of a test that takes it. */
export const inBrowser = { timeout: 120_000, skip: chromium === null && 'Chromium is not installed' };

export interface Look {
  readonly width: number;
  readonly scheme: 'light' | 'dark';
}

export interface OpenPage {
  readonly page: Page;
  /** Opens the address, and returns when its load event was fired. */
  open(url: string, look: Look): Promise<void>;
  /** The value of an expression within the page, of a promise what it resolves to. */
  evaluate<T>(expression: string): Promise<T>;
  /** URLs that were asked for, and what was written to the console or thrown, so far. */
  readonly requested: readonly string[];
  readonly complaints: readonly string[];
}

/** One for all tests of a process: to start it takes most of a second of CPU. */
let browser: Promise<Browser> | undefined;
after(async () => (await browser)?.close());

function launch(): Promise<Browser> {
  // A container's root may not use the sandbox, and nothing foreign is opened here.
  const args = ['--no-sandbox', '--disable-gpu'];
  browser ??= playwright.launch({ executablePath: chromium as string, args });
  return browser;
}

/** A page that shares nothing with those of other tests; ends with the test. */
export async function openBrowser(t: TestContext): Promise<OpenPage> {
  const context = await (await launch()).newContext();
  t.after(() => context.close());
  const page = await context.newPage();
  const requested: string[] = [];
  const complaints: string[] = [];
  page.on('request', (request) => requested.push(request.url()));
  page.on('pageerror', ({ message }) => complaints.push(message));
  page.on('console', (message) => {
    if (message.type() !== 'log') complaints.push(textOf(message));
  });
  return {
    page,
    requested,
    complaints,
    open: async (url, { width, scheme }) => {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme: scheme });
      await page.goto(url);
    },
    evaluate: (expression) => page.evaluate(expression),
  };
}

const textOf = (message: ConsoleMessage): string => `${message.type()}: ${message.text()}`;
