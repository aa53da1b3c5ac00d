export interface AnswerDraw {
  readonly learner: number;
  readonly skill: number;
}

export type LearnerOrder = 'uniform' | 'zipf' | 'hot' | 'one skill';

/**
 * Endless. `hot`: one learner; `one skill`: one skill per learner.
 * @param random from 0 to below 1
 */
export function createDraws(
  order: LearnerOrder,
  learners: number,
  skills: number,
  random: () => number,
): () => AnswerDraw {
  const upTo = (end: number): number => Math.floor(random() * end);
  const drawn = (learner: number): AnswerDraw => ({ learner, skill: upTo(skills) });
  if (order === 'uniform') return () => drawn(upTo(learners));
  if (order === 'hot') return () => drawn(0);
  if (order === 'zipf') return () => drawn(zipf(learners, random()));
  return () => {
    const learner = upTo(learners);
    return { learner, skill: learner % skills };
  };
}

/**
 * Exponent 1, continuous: the density falls with 1 / rank.
 * @param share from 0 to below 1
 */
const zipf = (learners: number, share: number): number =>
  Math.min(learners - 1, Math.floor((learners + 1) ** share) - 1);
