import type { ServedForecast } from '../../../src/contracts/journal/journal.js';

/** A forecast as it could have been served. */
export const servedForecast = (change: Partial<ServedForecast> = {}): ServedForecast => ({
  ...{ tenant: 'default', userId: 'learner-1', madeAt: Date.UTC(2026, 0, 10, 15) },
  ...{ days: 7, level: 0.8, learnerSeq: 10 },
  current: { math: 500, rw: 520, total: 1020 },
  predicted: { math: 510, rw: 530, total: 1040 },
  intervals: { math: { low: 450, high: 570 }, rw: { low: 470, high: 590 }, total: { low: 960, high: 1120 } },
  ...{ targetScore: 1200, goalProbability: 0.25, modelVersion: 3, tenantModelVersion: 7 },
  accuracy: {
    expected: 0.7,
    sd: 0.1,
    reach: [
      { below: 0.6, above: 0.7 },
      { below: 1.2, above: 1.3 },
      { below: 1.9, above: 2 },
    ],
    factors: { below: 1, above: 1 },
    cases: 0,
  },
  ...change,
});
