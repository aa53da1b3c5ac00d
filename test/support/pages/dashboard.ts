/** The dashboard in Chromium. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import axe from 'axe-core';
import type { Service } from '../servers/service.js';
import { type Look, openBrowser } from './browser.js';

export type Dashboard = Awaited<ReturnType<typeof openDashboard>>;

/** Resolves when the page is drawn and started to load its data. */
const goTo = (hash: string): string => `new Promise((done) => {
  const frames = (left) => left === 0 ? done() : requestAnimationFrame(() => frames(left - 1));
  if (location.hash === ${JSON.stringify(hash)}) return done();
  addEventListener('hashchange', () => frames(3), { once: true });
  location.hash = ${JSON.stringify(hash)};
})`;

/** Violations that axe rates serious or critical. */
const findings = `axe.run({ resultTypes: ['violations'] }).then(({ violations }) => violations
  .filter(({ impact }) => impact === 'serious' || impact === 'critical')
  .map(({ id, nodes }) => id + ': ' + nodes.slice(0, 3).map(({ html }) => html.slice(0, 200)).join(' | ')))`;

/** Names of charts in which an axis has the same label twice in a row. */
const repeatedLabels = `[...document.querySelectorAll('.plot g[font-variant="tabular-nums"]')]
  .filter((axis) => [...axis.querySelectorAll('text')].map((label) => label.textContent)
    .some((text, i, all) => text !== '' && text === all[i - 1]))
  .map((axis) => axis.closest('svg').getAttribute('aria-label'))`;

const looks: readonly Look[] = [
  { width: 360, scheme: 'light' },
  { width: 1280, scheme: 'dark' },
];

/** The link that `npm start` prints. */
export const linkOf = ({ baseUrl }: Pick<Service, 'baseUrl'>, key: string): string =>
  `${baseUrl}/dashboard#key=${key}`;

export async function openDashboard(
  t: TestContext,
  service: Pick<Service, 'baseUrl' | 'key'>,
  look: Look = { width: 1280, scheme: 'light' },
  timezoneId?: string,
) {
  const opened = await openBrowser(t, timezoneId);
  await opened.open(linkOf(service, service.key), look);
  const settled = () =>
    opened.page.waitForSelector('main:not(:has(.loading, [aria-busy=true], .drawing:empty))');
  await settled();
  /** Fails if the page is wider than the window. */
  const assertFits = async (): Promise<void> => {
    const over = await opened.evaluate<number>('document.documentElement.scrollWidth - innerWidth');
    assert.ok(over <= 0, `${await opened.evaluate('location.hash')} is ${over} pixels too wide`);
  };
  /** Also fails if an axis repeats a label, or a rule of axe is broken. axe takes a third of a second of CPU. */
  const assertUsable = async (): Promise<void> => {
    await assertFits();
    assert.deepEqual(await opened.evaluate(repeatedLabels), [], 'axis labels repeat');
    if (!(await opened.evaluate<boolean>("'axe' in globalThis"))) await opened.page.evaluate(axe.source);
    assert.deepEqual(await opened.evaluate(findings), [], await opened.evaluate('location.hash'));
  };
  return {
    ...opened,
    assertFits,
    assertUsable,
    /** On a phone and on a desktop. full/dashboard checks all widths in both themes. */
    assertUsableEverywhere: async (): Promise<void> => {
      for (const { width, scheme } of looks) {
        await opened.page.setViewportSize({ width, height: 900 });
        await opened.page.emulateMedia({ colorScheme: scheme });
        await assertUsable();
      }
    },
    /**
     * Navigates within the dashboard and waits until the page is loaded.
     * @param retries how often to reload failed parts. A read fails after 3 s if ClickHouse is busy.
     */
    show: async (hash: string, retries = 5): Promise<void> => {
      await opened.evaluate(goTo(hash));
      await settled();
      const failed = opened.page.getByRole('button', { name: 'Try again' });
      for (let left = retries; left > 0 && (await failed.count()) > 0; left--) {
        await failed.first().click();
        await settled();
      }
    },
  };
}
