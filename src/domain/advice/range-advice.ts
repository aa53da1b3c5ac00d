import type { PerSection, Section } from '../base/common.js';
import { scoreConstants } from '../base/score-constants.js';
import { estimateAbilities, type SectionMeasure } from '../score/assessment.js';
import { computeVariances, type ScoreForecast } from '../score/scores.js';
import { adviceTexts, type Locale, type RangeTerm } from './advice-texts.js';

const { perAnswer, base } = scoreConstants.measurement;

/** Each removes one term from the variance of a section. */
const removals: Readonly<
  Record<Exclude<RangeTerm, 'FAR_HORIZON'>, (own: SectionMeasure, other: SectionMeasure) => SectionMeasure>
> = {
  NO_SECTION: (own, other) => (own.answers === 0 ? other : own),
  // Half an answer is the least. Without answers the noise stays infinite.
  FEW_ANSWERS: (own) => ({ ...own, noise: own.noise - perAnswer / Math.max(0.5, own.answers) }),
  FEW_SKILLS: (own) => ({ ...own, noise: base + perAnswer / own.answers }),
  NOT_FITTED: (own) => ({ ...own, distrust: own.distrust - own.unfitted }),
};

/** The term without which the total's range would be narrowest; its section is null if both matter about equally. */
export function adviseOnRange(
  { math, rw }: PerSection<SectionMeasure>,
  { totalSd, swing }: Pick<ScoreForecast, 'totalSd' | 'swing'>,
  days: number,
  locale: Locale,
) {
  const reductionOf = (...terms: Parameters<typeof computeVariances>): number =>
    1 - Math.sqrt(computeVariances(...terms).total) / totalSd;
  const today = reductionOf(estimateAbilities({ math, rw }), { math: 0, rw: 0 }, 0);
  let best = { code: 'FAR_HORIZON' as RangeTerm, section: null as Section | null, reduction: today };
  for (const [code, remove] of Object.entries(removals)) {
    const without = { math: remove(math, rw), rw: remove(rw, math) };
    const reduce = (measures: PerSection<SectionMeasure>) =>
      reductionOf(estimateAbilities(measures), swing, days);
    const more = reduce({ math: without.math, rw }) - reduce({ math, rw: without.rw });
    const isShared = code === 'NOT_FITTED' || Math.abs(more) < scoreConstants.minSectionDifference;
    const section = isShared ? null : more > 0 ? 'math' : 'rw';
    const reduction = reduce(without);
    if (reduction > best.reduction) best = { code: code as RangeTerm, section, reduction };
  }
  const { code, section, reduction } = best;
  if (reduction < scoreConstants.minRangeReduction) return null;
  return { code, section, text: adviceTexts[locale].range(code, section, Math.round(100 * reduction)) };
}
