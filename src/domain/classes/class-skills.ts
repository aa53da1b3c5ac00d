import { average } from '../base/common.js';
import { computeExpectedAccuracy, isMasteredAt, type SkillContext } from '../learner/expected-accuracy.js';
import type { SkillView } from '../learner/skill-view.js';
import { isPlateau } from '../tracing/plateau.js';
import { classConstants, isStruggling } from './class-constants.js';

const newTally = () => ({ expected: [] as number[], mastered: 0, struggling: 0, stuck: 0 });
type SkillTally = ReturnType<typeof newTally>;
/** By skill id. */
export type SkillTallies = Map<string, SkillTally>;

/** Adds one learner's skill. */
export function tallySkill(tallies: SkillTallies, view: SkillView, context: SkillContext): void {
  const { expected } = computeExpectedAccuracy(view, context.learner, context.model, context.now);
  const tally = tallies.get(view.skillId) ?? newTally();
  const isStuck = isPlateau(view.state.plateau);
  tally.expected.push(expected);
  if (isMasteredAt(view, () => expected)) tally.mastered++;
  if (isStuck) tally.stuck++;
  if (isStruggling({ expected, isStuck, answers: view.state.attempts })) tally.struggling++;
  tallies.set(view.skillId, tally);
}

export type ClassSkill = ReturnType<typeof summarizeTally>;

/** First the skills with most struggling learners, then those with the lowest mean. */
export const rankByNeed = (tallies: SkillTallies): ClassSkill[] =>
  Array.from(tallies, ([skillId, tally]) => summarizeTally(skillId, tally)).sort(
    (a, b) =>
      b.struggling - a.struggling || a.expected.mean - b.expected.mean || (a.skillId < b.skillId ? -1 : 1),
  );

function summarizeTally(skillId: string, { expected, ...counts }: SkillTally) {
  const sorted = Float64Array.from(expected).sort();
  const [q1, median, q3] = [interpolate(sorted, 0.25), interpolate(sorted, 0.5), interpolate(sorted, 0.75)];
  const mean = average(expected, (value) => value);
  return { skillId, learners: expected.length, ...counts, expected: { mean, q1, median, q3 } };
}

/** Like quantileExactInclusive of ClickHouse. */
function interpolate(sorted: Float64Array, p: number): number {
  const at = p * (sorted.length - 1);
  const low = sorted[Math.floor(at)] as number;
  return low + (at % 1) * ((sorted[Math.ceil(at)] as number) - low);
}

/** A large part of the learners needs the skill. */
export const isForReteaching = ({ struggling, learners }: ClassSkill): boolean =>
  struggling >= Math.max(classConstants.reteach.minLearners, classConstants.reteach.minShare * learners);

export const describeNeed = ({ struggling, learners, expected }: ClassSkill): string =>
  `${struggling} of ${learners} learners struggle; expected accuracy ${Math.round(100 * expected.mean)} %`;
