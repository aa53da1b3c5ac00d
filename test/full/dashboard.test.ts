/** SCREENSHOTS=FOLDER saves a screenshot of each page; WRITE_DOCS=1 takes the screenshots of README.md. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { runCommand } from '../support/commands/command.js';
import { inBrowser, type Look } from '../support/pages/browser.js';
import { type Dashboard, openDashboard } from '../support/pages/dashboard.js';
import { root } from '../support/runner/root.js';
import { startServers } from '../support/servers/servers.js';
import { startService } from '../support/servers/service.js';

const pages: Readonly<Record<string, string>> = {
  today: '#/today',
  class: '#/class',
  'heat-map': '#/class?view=map',
  'class-skills': '#/class?group=class-10-A&view=skills',
  'class-map': '#/class?group=class-10-A&view=map',
  learner: '#/learner/demo-at-risk',
  'learner-skill': '#/learner/demo-at-risk?skill=rational-expressions',
  guesser: '#/learner/demo-guesser',
  skills: '#/skills',
  skill: '#/skills/linear-equations',
  model: '#/model?from=1&to=2',
  live: '#/live',
  keys: '#/operations',
  settings: '#/operations/settings',
  webhooks: '#/operations/webhooks',
  erasures: '#/operations/erasures',
  parked: '#/operations/parked',
  audit: '#/operations/audit',
  activity: '#/operations/activity',
  versions: '#/operations/versions',
  'about-demo': '#/about-demo',
};

const looks: readonly Look[] = [1280, 360, 2560].flatMap((width) =>
  (['light', 'dark'] as const).map((scheme) => ({ width, scheme })),
);

const folder = process.env.SCREENSHOTS;

test('Every dashboard page passes the axe rules on the demo data, in two themes and three widths', {
  ...inBrowser,
  timeout: 900_000,
}, async (t) => {
  const { env } = await startServers(t);
  const made = await runCommand('demo', env, '--json');
  assert.equal(made.code, 0, made.err);
  const { REDIS_URL: redisUrl = '', CLICKHOUSE_URL: clickhouseUrl = '', DATA_DIR: dataDir = '' } = env;
  const service = await startService(t, { redisUrl, clickhouseUrl, dataDir });
  const key = readFileSync(join(dataDir, 'demo-key'), 'utf8').trim();
  if (folder !== undefined) mkdirSync(folder, { recursive: true });
  const dashboard = await openDashboard(t, { ...service, key });
  for (const look of looks) {
    await dashboard.page.setViewportSize({ width: look.width, height: 900 });
    await dashboard.page.emulateMedia({ colorScheme: look.scheme });
    for (const [name, hash] of Object.entries(pages)) {
      await dashboard.show(hash);
      await dashboard.assertUsable();
      const path = join(folder ?? '', `${name}-${look.width}-${look.scheme}.png`);
      if (folder !== undefined) await dashboard.page.screenshot({ path, fullPage: true });
    }
  }
  if (process.env.WRITE_DOCS === '1') await takePictures(dashboard);
  assert.deepEqual(dashboard.complaints, []);
});

async function takePictures({ page, show }: Dashboard): Promise<void> {
  await page.setViewportSize({ width: 1440, height: 960 });
  for (const scheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    await show('#/today?group=class-10-A');
    await page.screenshot({ path: join(root, `docs/images/dashboard-${scheme}.png`) });
  }
}
