export interface AnswerDraw {
  readonly learner: number;
  readonly skill: number;
}

export type LearnerOrder = 'random' | 'zipf' | 'sittings' | 'hot' | 'one skill';

const concurrentSittings = 200;
const sittingAnswers = { least: 10, most: 30 };
/** Probability that an answer of a sitting is on another skill. */
const otherSkillShare = 0.2;

/**
 * Endless. `hot`: one learner; `one skill`: one skill per learner.
 * @param random from 0 to below 1
 */
export function createDraws(
  order: LearnerOrder,
  learners: number,
  skills: number,
  random: () => number = Math.random,
): () => AnswerDraw {
  const upTo = (end: number): number => Math.floor(random() * end);
  const drawn = (learner: number): AnswerDraw => ({ learner, skill: upTo(skills) });
  if (order === 'random') return () => drawn(upTo(learners));
  if (order === 'hot') return () => drawn(0);
  if (order === 'zipf') return () => drawn(zipf(learners, random()));
  if (order === 'sittings') return createSittingDraws(learners, skills, upTo, random);
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

interface Sitting extends AnswerDraw {
  answersLeft: number;
}

function createSittingDraws(
  learners: number,
  skills: number,
  upTo: (end: number) => number,
  random: () => number,
): () => AnswerDraw {
  const startSitting = (): Sitting => ({
    learner: upTo(learners),
    skill: upTo(skills),
    answersLeft: sittingAnswers.least + upTo(sittingAnswers.most - sittingAnswers.least + 1),
  });
  const sittings = Array.from({ length: concurrentSittings }, startSitting);
  return () => {
    const index = upTo(concurrentSittings);
    const sitting = sittings[index] as Sitting;
    sitting.answersLeft -= 1;
    if (sitting.answersLeft === 0) sittings[index] = startSitting();
    return random() < otherSkillShare ? { learner: sitting.learner, skill: upTo(skills) } : sitting;
  };
}
