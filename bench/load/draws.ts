export interface AnswerDraw {
  readonly learner: number;
  readonly skill: number;
}

export type LearnerOrder = 'uniform' | 'zipf';

/** Skills that each learner practises: as in practice, most answers are on known skills. */
const activeSkills = 5;

/** Endless. @param random from 0 to below 1 */
export function createDraws(
  order: LearnerOrder,
  learners: number,
  skills: number,
  random: () => number,
): () => AnswerDraw {
  const upTo = (end: number): number => Math.floor(random() * end);
  const drawLearner = () => (order === 'zipf' ? zipf(learners, random()) : upTo(learners));
  return () => {
    const learner = drawLearner();
    return { learner, skill: (activeSkills * learner + upTo(activeSkills)) % skills };
  };
}

/**
 * Exponent 1, continuous: the density falls with 1 / rank.
 * @param share from 0 to below 1
 */
const zipf = (learners: number, share: number): number =>
  Math.min(learners - 1, Math.floor((learners + 1) ** share) - 1);
