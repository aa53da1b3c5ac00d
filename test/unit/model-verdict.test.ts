/** The verdict on the Model page of the dashboard. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Coverage } from '../../src/client/types.js';
import { judgeForecasts } from '../../src/pages/dashboard/pages/model/verdict.js';

type Band = Coverage['bands'][number];

const band = (cases: number, learners: number, coverage_80: number): Band =>
  ({ cases, learners, coverage_80 }) as Band;

const judge = (...bands: Band[]) => judgeForecasts(bands, 28);

test('judgeForecasts weighs the bands by their forecasts', () => {
  assert.deepEqual(judge(band(300, 90, 0.75), band(100, 30, 0.9)), {
    tone: 'good',
    text: 'Predictions are reliable: 79 % of 80 % ranges were right over 28 days.',
  });
});

test('judgeForecasts accepts 76 to 84 %', () => {
  const tones = [0.754, 0.756, 0.844, 0.846].map((share) => judge(band(200, 30, share)).tone);
  assert.deepEqual(tones, ['alert', 'good', 'good', 'soft']);
  assert.match(judge(band(200, 30, 0.7)).text, /^Predictions are not reliable: only 70 % of 80 % ranges/);
  assert.match(judge(band(200, 30, 0.9)).text, /^Predictions are cautious: 90 % of 80 % ranges/);
});

test('judgeForecasts needs 200 forecasts and 30 learners', () => {
  const few = [judge(), judge(band(199, 90, 0.8)), judge(band(150, 29, 0.8), band(150, 29, 0.8))];
  for (const { tone, text } of few) {
    assert.equal(tone, 'soft');
    assert.match(text, /^Not enough data to judge predictions: \d+ forecasts had results over 28 days\.$/);
  }
});
