/** What a demo says of the dashboard, and when it opens a browser: where somebody sits before it, never for a program. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findPageOpener, formatDashboard } from '../../src/cli/demo/demo-dashboard.js';

const opener = (
  env: Record<string, string>,
  isTerminal = true,
  platform: NodeJS.Platform = 'linux',
): string | null => findPageOpener({ env, isTerminal, platform });

test('a desktop opens it, a pipe, CI, a remote shell or a machine without a display does not', () => {
  assert.equal(opener({ DISPLAY: ':0' }), 'xdg-open');
  assert.equal(opener({ WAYLAND_DISPLAY: 'wayland-0' }), 'xdg-open');
  assert.equal(opener({}, true, 'darwin'), 'open');
  assert.equal(opener({}), null);
  assert.equal(opener({ DISPLAY: ':0' }, false), null);
  assert.equal(opener({ DISPLAY: ':0', CI: 'true' }), null);
  assert.equal(opener({ SSH_CONNECTION: '192.0.2.1 5 192.0.2.2 22' }, true, 'darwin'), null);
});

test('the text says what is left to do', () => {
  const found = { tenant: 'demo', page: 'http://127.0.0.1:3000/dashboard' };
  const link = `${found.page}#key=dev-1`;
  assert.equal(formatDashboard({ ...found, link, isServing: true }), `Dashboard: ${link}`);
  assert.equal(
    formatDashboard({ ...found, link, isServing: false }),
    `Dashboard: type npm start, then open ${link}`,
  );
  assert.match(
    formatDashboard({ ...found, link: null, isServing: false }),
    /npm run keys -- create --tenant demo/,
  );
});
