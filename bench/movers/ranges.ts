import { forecastLearner } from '../../src/domain/score/learner-forecast.js';
import { createDraws } from '../../src/lab/demo/school.js';
import { indices } from '../../src/lists.js';
import { mean } from '../results/spread.js';
import { createServedLearner } from '../simulation/served-learner.js';
import { computeAnswerTime, msPerAnswer } from './histories.js';
import type { Tenant } from './tenants.js';

export const rangeAnswers = [40, 100, 200, 400, 800, 1600];
const skillCounts = [4, 12, 24, 40];
const horizons = [1, 30, 90];
const rightShare = 0.7;

/** Mean width of the 80 % range of the total, by skills and horizon, after each number of answers. */
export const measureRanges = (tenant: Tenant, seeds: number) =>
  skillCounts.flatMap((skills) => {
    const runs = indices(seeds).map((seed) => measureWidths(tenant, skills, seed + 1));
    return horizons.map((days, h) => ({
      ...{ skills, days },
      widths: rangeAnswers.map((_, i) => mean(runs.map((widths) => widths[i]?.[h] as number))),
    }));
  });

function measureWidths({ model, knownSkills, drawSkills }: Tenant, skills: number, seed: number): number[][] {
  const draws = createDraws(seed);
  const askers = drawSkills(skills, draws);
  const learner = createServedLearner(model, knownSkills);
  const widths: number[][] = [];
  for (const i of indices(Math.max(...rangeAnswers))) {
    const outcome = { isCorrect: draws.chance(rightShare), timeSpentSeconds: 40 };
    learner.count(draws.pick(askers)(), { ...outcome, occurredAt: computeAnswerTime({}, i) });
    if (!rangeAnswers.includes(i + 1)) continue;
    const subject = learner.subjectAt(computeAnswerTime({}, i) + msPerAnswer);
    widths.push(
      horizons.map((days) => {
        const { low, high } = forecastLearner(subject, { days, level: 0.8, goal: null }).requested.intervals
          .total;
        return high - low;
      }),
    );
  }
  return widths;
}
