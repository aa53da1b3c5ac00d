export interface Draw {
  readonly learner: number;
  readonly skill: number;
}

export type Order = 'random' | 'zipf' | 'sittings' | 'hot' | 'one skill';

/** `otherSkillShare`: probability that an answer of a sitting is on another skill. */
const seats = 200;
const sittingAnswers = { least: 10, most: 30 };
const otherSkill = 0.2;

/**
 * Endless. `hot`: one learner; `one skill`: one skill per learner.
 * @param random from 0 to below 1
 */
export function drawsOf(
  order: Order,
  learners: number,
  skills: number,
  random: () => number = Math.random,
): () => Draw {
  const upTo = (end: number): number => Math.floor(random() * end);
  const drawn = (learner: number): Draw => ({ learner, skill: upTo(skills) });
  if (order === 'random') return () => drawn(upTo(learners));
  if (order === 'hot') return () => drawn(0);
  if (order === 'zipf') return () => drawn(zipf(learners, random()));
  if (order === 'sittings') return inSittings(learners, skills, upTo, random);
  return () => {
    const learner = upTo(learners);
    return { learner, skill: learner % skills };
  };
}

/**
 * Exponent 1, continuous: the density falls with 1 / rank.
 * @param share from 0 to below 1
 */
export const zipf = (learners: number, share: number): number =>
  Math.min(learners - 1, Math.floor((learners + 1) ** share) - 1);

interface Seat extends Draw {
  left: number;
}

function inSittings(
  learners: number,
  skills: number,
  upTo: (end: number) => number,
  random: () => number,
): () => Draw {
  const sitDown = (): Seat => ({
    learner: upTo(learners),
    skill: upTo(skills),
    left: sittingAnswers.least + upTo(sittingAnswers.most - sittingAnswers.least + 1),
  });
  const taken = Array.from({ length: seats }, sitDown);
  return () => {
    const place = upTo(seats);
    const seat = taken[place] as Seat;
    seat.left -= 1;
    if (seat.left === 0) taken[place] = sitDown();
    return random() < otherSkill ? { learner: seat.learner, skill: upTo(skills) } : seat;
  };
}
