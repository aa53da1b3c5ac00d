/** Headless Chromium for tests of pages. playwright-core does not install a browser. */
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { TestContext } from 'node:test';
import { type Browser, chromium as playwright } from 'playwright-core';
import { testProcess } from '../runner/test-group.js';

/** Path of Chromium; null if it is not installed. */
export const chromium: string | null =
  ['chromium', 'chromium-browser', 'google-chrome']
    .flatMap((name) => (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, name)))
    .find((file) => existsSync(file)) ?? null;

/** Options of a test that needs Chromium. */
export const inBrowser = { timeout: 120_000, skip: chromium === null && 'Chromium is not installed' };

export interface Look {
  readonly width: number;
  readonly scheme: 'light' | 'dark';
}

export type OpenPage = Awaited<ReturnType<typeof openBrowser>>;

/** Shared by all tests of a process, because a start takes almost a second of CPU. */
let browser: Promise<Browser> | undefined;

function launch(): Promise<Browser> {
  // Root in a container cannot use the sandbox. Tests open only pages of this project.
  const args = ['--no-sandbox', '--disable-gpu'];
  if (browser === undefined) {
    browser = playwright.launch({ executablePath: chromium as string, args });
    testProcess.after(async () => (await browser)?.close());
  }
  return browser;
}

/** A page with a separate session. It closes after the test. */
export async function openBrowser(t: TestContext, timezoneId?: string) {
  const context = await (await launch()).newContext({ ...(timezoneId && { timezoneId }) });
  t.after(() => context.close());
  const page = await context.newPage();
  const requested: string[] = [];
  const complaints: string[] = [];
  page.on('request', (request) => requested.push(request.url()));
  page.on('pageerror', ({ message }) => complaints.push(message));
  page.on('console', (message) => {
    // Chromium logs each response with status 503, which the pages show with "Try again".
    if (message.type() !== 'log' && !message.text().includes('status of 503'))
      complaints.push(`${message.type()}: ${message.text()}`);
  });
  return {
    page,
    /** URLs that the page requested so far. */
    requested,
    /** Messages on the console, and errors thrown in the page, so far. */
    complaints,
    /** Opens the address and waits for its load event. */
    open: async (url: string, { width, scheme }: Look): Promise<void> => {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme: scheme });
      await page.goto(url);
    },
    /** Evaluates an expression in the page, and awaits its value. */
    evaluate: <T>(expression: string): Promise<T> => page.evaluate<T>(expression),
  };
}
