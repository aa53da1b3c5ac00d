/** What would narrow the range of a score most. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { adviseOnRange } from '../../src/domain/advice/range-advice.js';
import type { PerSection } from '../../src/domain/base/common.js';
import { estimateAbilities, type SectionMeasure } from '../../src/domain/score/assessment.js';
import { computeVariances } from '../../src/domain/score/scores.js';
import { between } from '../support/builders/arbitraries.js';
import { fc, forAll } from '../support/builders/properties.js';

/** Many answers on all skills, with fitted parameters. */
const known: SectionMeasure = {
  ...{ answers: 1000, seenWeight: 20, registeredWeight: 20, registeredSkills: 20 },
  ...{ mastery: 0.5, ability: 0, noise: 0.0773, distrust: 0, halfLife: 365, unfitted: 0 },
};
const unknown = { ...known, answers: 0, seenWeight: 0, noise: Number.POSITIVE_INFINITY };
const still = { math: 0, rw: 0 };

const adviseFor = (measures: PerSection<SectionMeasure>, { days = 1, swing = still } = {}) => {
  const { total } = computeVariances(estimateAbilities(measures), swing, days);
  return adviseOnRange(measures, { totalSd: Math.sqrt(total), swing }, days, 'en');
};

test('adviseOnRange names the term and the section that widen the range most', () => {
  const few = { ...known, answers: 20, noise: 0.07 + 7.3 / 20 };
  const drilled = { ...known, seenWeight: 2, noise: 0.0773 + 0.8 };
  const unfitted = { ...known, distrust: 0.08, unfitted: 0.075 };
  const cases: readonly [...Parameters<typeof adviseFor>, expected: string | null][] = [
    [{ math: known, rw: known }, {}, null],
    [{ math: known, rw: unknown }, {}, 'NO_SECTION rw'],
    [{ math: few, rw: few }, {}, 'FEW_ANSWERS null'],
    [{ math: few, rw: known }, {}, 'FEW_ANSWERS math'],
    [{ math: known, rw: drilled }, {}, 'FEW_SKILLS rw'],
    [{ math: unfitted, rw: unfitted }, {}, 'NOT_FITTED null'],
    [{ math: known, rw: known }, { days: 365 }, 'FAR_HORIZON null'],
    [{ math: known, rw: known }, { swing: { math: 1, rw: 1 } }, 'FAR_HORIZON null'],
  ];
  for (const [measures, when, expected] of cases) {
    const advice = adviseFor(measures, when);
    assert.equal(advice && `${advice.code} ${advice.section}`, expected);
  }
  assert.equal(
    adviseFor({ math: known, rw: unknown })?.text,
    'Answers in Reading and Writing would narrow this range most, by up to 41%.',
  );
});

test('adviseOnRange reduces the range by 10 to 100 %, for any measures', () => {
  const anyMeasure = fc
    .record({ halves: fc.nat({ max: 900 }), uncovered: between(0, 2), unfitted: between(0, 0.1) })
    .map(({ halves, uncovered, unfitted }) => {
      const measure = { ...known, answers: halves / 2, noise: 0.07 + 14.6 / halves + uncovered };
      return halves === 0 ? unknown : { ...measure, unfitted, distrust: 2 * unfitted };
    });
  const days = fc.integer({ min: 1, max: 365 });
  forAll(anyMeasure, anyMeasure, days, (math, rw, days) => {
    const text = adviseFor({ math, rw }, { days })?.text ?? 'by up to 50%.';
    const percent = Number(/by up to (\d+)%\.$/.exec(text)?.[1]);
    assert.ok(percent >= 10 && percent < 100 && text.length <= 200, text);
  });
});
