import type { Coverage } from '../../../../client/types.js';
import { accuracyConstants } from '../../../../domain/base/accuracy-constants.js';
import { computeSum } from '../../../../lists.js';
import { formatPercent, pluralize } from '../../base/format.js';

type Band = Coverage['bands'][number];

/** Our choice: with fewer forecasts or learners, the share may be chance. */
const verdictMinimum = { forecasts: 200, learners: 30 } as const;

const level = 80;
/** In percent. */
const slack = 100 * accuracyConstants.coverageSlack;

export const verdictRule = `Reliable means: ${level - slack} to ${level + slack} % of the ${level} % ranges of forecasts contained the result. The verdict needs ${verdictMinimum.forecasts} forecasts with results, of at least ${verdictMinimum.learners} learners.`;

export interface Verdict {
  readonly tone: 'good' | 'alert' | 'soft';
  readonly text: string;
}

/** @param days of the results */
export function judgeForecasts(bands: readonly Band[], days: number): Verdict {
  const cases = computeSum(bands.map((band) => band.cases));
  // Bands share learners.
  const learners = Math.max(0, ...bands.map((band) => band.learners));
  if (cases < verdictMinimum.forecasts || learners < verdictMinimum.learners)
    return {
      tone: 'soft',
      text: `Not enough data to judge predictions: ${pluralize(cases, 'forecast')} had results over ${pluralize(days, 'day')}.`,
    };
  const share = computeSum(bands.map((band) => band.cases * band.coverage_80)) / cases;
  const found = `${formatPercent(share)} of ${level} % ranges were right over ${pluralize(days, 'day')}`;
  const difference = Math.round(100 * share) - level;
  if (Math.abs(difference) <= slack) return { tone: 'good', text: `Predictions are reliable: ${found}.` };
  return difference < 0
    ? { tone: 'alert', text: `Predictions are not reliable: only ${found}. The ranges are too narrow.` }
    : { tone: 'soft', text: `Predictions are cautious: ${found}. The ranges are wider than necessary.` };
}
