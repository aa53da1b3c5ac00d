/** Each world assumes another way of learning. */
import { clamp, logit, sigmoid } from '../../src/domain/base/common.js';
import { createDraws } from '../../src/lab/demo/school.js';
import { indices } from '../../src/lists.js';

export const skillCount = 40;
export const itemsPerSkill = 6;

export interface World {
  readonly about: string;
  /** Success rate at which an answer teaches most; null: no such rate. */
  readonly peak: number | null;
  /** A skill is learned in one step, as in BKT, not in steps of half a logit. */
  readonly learnsInstantly?: true;
  /** A skill teaches a fifth until its predecessor in a chain of four is mastered. */
  readonly hasChains?: true;
  /** Logits per day without an answer on the skill, down to the initial level. */
  readonly forgettingPerDay?: number;
  readonly isUnrated?: true;
}

export const worlds: Readonly<Record<string, World>> = {
  zone: { about: 'learning gain is highest at a success rate of .75', peak: 0.75 },
  hard: { about: 'learning gain is highest at .5', peak: 0.5 },
  easy: { about: 'learning gain is highest at .85', peak: 0.85 },
  even: { about: 'the learning gain is constant', peak: null },
  bkt: { about: 'constant, and a skill is learned in one step', peak: null, learnsInstantly: true },
  chains: { about: 'highest at .75, with prerequisites', peak: 0.75, hasChains: true },
  fading: { about: 'highest at .75, with forgetting', peak: 0.75, forgettingPerDay: 0.02 },
  unrated: { about: 'highest at .75, without item difficulties', peak: 0.75, isUnrated: true },
};

const assumptions = {
  items: { sd: 0.8, ratingError: 0.5 },
  guess: 0.1,
  slip: 0.05,
  /** Logits: mean, and sds of learners, of skills, and of a learner's skills. */
  start: { mean: -0.5, learner: 0.6, skill: 0.5, own: 0.5 },
  /** `chance` of a step at the peak, `alike` without a peak; sds of its logarithm. */
  step: { logits: 0.5, chance: 0.6, alike: 0.35, learner: 0.3, skill: 0.2 },
  /** Level in logits at which 80 % of medium items are known. */
  mastered: 1.4,
  atOnce: { guess: 0.2, slip: 0.1, chance: 0.12, perDifficulty: 0.7, known: 9 },
  unready: 0.2,
} as const;

export interface Item {
  readonly index: number;
  readonly skill: number;
  readonly itemId: string;
  readonly skillId: string;
  readonly difficulty: number;
  readonly rated: number | null;
}

export function drawBank({ isUnrated }: World, seed: number): Item[] {
  const draws = createDraws(2 * seed);
  const { sd, ratingError } = assumptions.items;
  return indices(skillCount * itemsPerSkill).map((index) => {
    const skill = Math.floor(index / itemsPerSkill);
    const difficulty = draws.normal(0, sd);
    const rated = clamp(draws.normal(difficulty, ratingError), -3, 3);
    const ids = { itemId: buildItemId(index), skillId: buildSkillId(skill) };
    return { index, skill, ...ids, difficulty, rated: isUnrated ? null : rated };
  });
}

export const buildSkillId = (skill: number): string => `skill-${skill}`;
const buildItemId = (index: number): string => `item-${index}`;

export type Learner = ReturnType<typeof drawLearner>;

export function drawLearner(
  { peak, learnsInstantly, hasChains, forgettingPerDay = 0 }: World,
  seed: number,
  number: number,
) {
  const { start, step, guess, slip, mastered } = assumptions;
  const school = createDraws(2 * seed + 1);
  const draws = createDraws(1e6 * seed + number);
  const [ability, pace] = [draws.normal(0, start.learner), draws.normal(0, step.learner)];
  const skills = indices(skillCount).map(() => {
    const begins = ability + draws.normal(school.normal(start.mean, start.skill), start.own);
    const speed = Math.exp(pace + school.normal(0, step.skill));
    const level = learnsInstantly && draws.chance(sigmoid(begins)) ? assumptions.atOnce.known : begins;
    return { begins, level, speed, isFresh: false };
  });
  const skillOf = ({ skill }: Pick<Item, 'skill'>) => skills[skill] as (typeof skills)[number];
  const isMastered = (skill: number): boolean => skillOf({ skill }).level >= mastered;

  function chanceOf(item: Item): number {
    if (!learnsInstantly) return guess + (1 - guess - slip) * sigmoid(skillOf(item).level - item.difficulty);
    const { guess: lucky, slip: careless, perDifficulty } = assumptions.atOnce;
    return sigmoid(logit(isMastered(item.skill) ? 1 - careless : lucky) - perDifficulty * item.difficulty);
  }

  function teaches(item: Item): number {
    const readiness =
      hasChains && item.skill % 4 > 0 && !isMastered(item.skill - 1) ? assumptions.unready : 1;
    const chance = peak === null ? step.alike : step.chance * computeNearness(chanceOf(item), peak);
    return Math.min(
      1,
      readiness * (learnsInstantly ? assumptions.atOnce.chance : chance) * skillOf(item).speed,
    );
  }

  function answer(item: Item): boolean {
    const state = skillOf(item);
    const isCorrect = draws.chance(chanceOf(item));
    if (draws.chance(teaches(item))) state.level += learnsInstantly ? assumptions.atOnce.known : step.logits;
    state.isFresh = true;
    return isCorrect;
  }

  function sleep(): void {
    for (const state of skills) {
      if (!state.isFresh)
        state.level = Math.max(Math.min(state.level, state.begins), state.level - forgettingPerDay);
      state.isFresh = false;
    }
  }
  return { draws, isMastered, teaches, answer, sleep };
}

/** 1 at the peak, 0 at 0 and 1. Deliberately not the engine's curve. */
const computeNearness = (p: number, peak: number): number =>
  (p / peak) ** (4 * peak) * ((1 - p) / (1 - peak)) ** (4 * (1 - peak));
