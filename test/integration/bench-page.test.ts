/** The benchmark's page in a browser. */
import { join } from 'node:path';
import { test } from 'node:test';
import { writeReport } from '../../bench/report/page.js';
import { benchResults, figure, spread } from '../support/builders/bench-results.js';
import { chromium } from '../support/pages/browser.js';
import { assertLegible } from '../support/pages/legible.js';
import { tempDir } from '../support/temp.js';

test('opens by itself, fits wide and narrow windows, and is legible in light and dark', {
  timeout: 60_000,
  skip: chromium === null && 'Chromium is not installed',
}, async (t) => {
  const file = join(await tempDir(t), 'page.html');
  const far = figure('far from its goal', spread(0.001, 0.5), { atMost: 10 }, 'ms');
  writeReport(benchResults({ figures: [...benchResults().figures, far] }), file);
  await assertLegible(t, file, /^Benchmark of Skilltrace$/);
});
