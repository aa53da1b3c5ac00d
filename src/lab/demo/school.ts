import { clamp, dayMs, sections } from '../../domain/base/common.js';
import { normalQuantile } from '../../domain/base/normal-distribution.js';
import { indices } from '../../lists.js';
import { createSeededRandom } from '../../seeded-random.js';

const skillNames = {
  math: `Ratios and rates, Percentages, Linear equations, Linear inequalities, Linear functions, Systems of equations,
Absolute value, Exponents and radicals, Polynomials, Quadratic equations, Nonlinear functions, Rational expressions,
Lines and angles, Triangles, Right triangle trigonometry, Circles, Area and volume, Data and scatterplots, Probability,
Samples and margins of error`,
  rw: `Words in context, Central ideas, Details, Textual evidence, Quantitative evidence, Inferences, Text structure,
Purpose, Paired texts, Transitions, Rhetorical synthesis, Sentence boundaries, Commas, Colons and dashes,
Subject and verb, Pronouns, Verb tenses, Modifiers, Parallel structure, Apostrophes`,
};

/** No BKT model fits these skills. */
const oddities: Readonly<Record<string, 'unteachable' | 'double' | 'dip'>> = {
  'quantitative-evidence': 'unteachable',
  'data-and-scatterplots': 'double',
  'rational-expressions': 'dip',
};

export type Draws = ReturnType<typeof createDraws>;

export function createDraws(seed: number) {
  const next = createSeededRandom(seed);
  const between = (low: number, high: number): number => low + (high - low) * next();
  return {
    between,
    chance: (p: number): boolean => next() < p,
    whole: (low: number, high: number): number => Math.floor(between(low, high + 1)),
    normal: (mean: number, sd: number): number => mean + sd * normalQuantile(between(1e-9, 1 - 1e-9)),
    pick: <Item>(items: readonly Item[]): Item => items[Math.floor(next() * items.length)] as Item,
  };
}

export type DemoSkill = ReturnType<typeof drawSkills>[number];
export type DemoItem = DemoSkill['items'][number];

/** Ids do not depend on the seed. */
export function drawSkills(seed: number) {
  const draws = createDraws(seed);
  return sections.flatMap((section) => {
    const names = skillNames[section].split(/,\s+/);
    return names.map((name, place) => {
      const id = toSkillId(name);
      return {
        ...{ id, name, section, oddity: oddities[id] },
        /** Log-odds of initial knowledge, and of a right answer without (`guess`) and with it (`known`). */
        easiness: draws.normal(-0.5, 0.5),
        guess: draws.normal(-1, 0.3),
        known: draws.normal(1.9, 0.3),
        /** Mean of ln(seconds). */
        logTime: Math.log(section === 'math' ? draws.between(60, 100) : draws.between(40, 75)),
        items: drawItems(draws, id, place % 4 === 1).map((item, i) => {
          const back = secondSkillBack(place)[i];
          const second = back === undefined ? null : toSkillId(names[Math.abs(place - back)] as string);
          return { ...item, second };
        }),
      };
    });
  });
}

const toSkillId = (name: string): string => name.toLowerCase().replaceAll(' ', '-');

/** A tenth of the items also needs an earlier skill of the section, this many places before. By index of the item. */
const secondSkillBack = (place: number): Readonly<Record<number, number>> =>
  place % 2 === 0 ? { 7: 3, 14: 1 } : { 14: 1 };

/** @param misleads one item attracts learners who know the skill to a wrong option */
function drawItems(draws: Draws, skillId: string, misleads: boolean) {
  const misleading = misleads ? draws.whole(0, 14) : null;
  return indices(15).map((i) => {
    const difficulty = draws.normal(0, 0.7);
    /** Rating by the author, in steps of half a logit. */
    const rated = clamp(Math.round(2 * draws.normal(difficulty, 0.4)) / 2, -3, 3);
    const id = `${skillId}-${`${i + 1}`.padStart(2, '0')}`;
    return { id, difficulty, rated: draws.chance(0.7) ? rated : null, misleading: i === misleading };
  });
}

const defaultKind = {
  /** Share of active weeks, sessions per week, answers per session. */
  ...{ weeks: 0.85, sessions: 2.1, answers: 8 },
  /** Share of rapid guesses, learning rate, ability in logits. */
  ...{ rapid: 0.01, learning: 1, ability: 0 },
  ...{ stuck: false, crams: false },
  atMostAnswers: Number.POSITIVE_INFINITY,
};

/** `upTo`: cumulative share. */
const learnerKinds: readonly (Partial<typeof defaultKind> & { readonly upTo: number })[] = [
  { upTo: 0.12, weeks: 0.95, sessions: 3.4, learning: 1.4, ability: 0.5 },
  { upTo: 0.3, weeks: 0.5, sessions: 1.8 },
  { upTo: 0.42, weeks: 0.6, sessions: 1.3, crams: true },
  { upTo: 0.49, rapid: 0.3, learning: 0.5, ability: -0.6 },
  { upTo: 0.57, stuck: true, learning: 0.6, ability: -0.4 },
];

/** First week of each twentieth of the learners. */
const cohortStartWeeks = [0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 5, 5, 5, 10, 10, 16, 16, 22];

/** `inDays`: after the last day; null: no date. */
export interface NamedGoal {
  readonly score: number;
  readonly inDays: number | null;
  readonly isGivenUp?: true;
}

type NamedLearner = Partial<typeof defaultKind> & {
  readonly begins?: number;
  readonly leaves?: number;
  readonly goal: NamedGoal | null;
};

/** One learner for each case that pages must show. `begins` and `leaves`: days before the end. */
const namedLearners: Readonly<Record<string, NamedLearner>> = {
  'on-track': { weeks: 1, sessions: 3, learning: 1.4, ability: 0.8, goal: { score: 1100, inDays: 60 } },
  'at-risk': { weeks: 0.9, learning: 0.5, ability: -0.5, stuck: true, goal: { score: 1400, inDays: 30 } },
  idle: { leaves: 45, goal: { score: 1200, inDays: 60 } },
  'four-answers': { begins: 7, atMostAnswers: 4, goal: null },
  guesser: { rapid: 0.95, learning: 0.2, ability: -0.5, goal: null },
  'goal-reached': {
    weeks: 1,
    learning: 1.4,
    ability: 1,
    goal: { score: 1050, inDays: null },
  },
  'goal-given-up': { weeks: 0.5, ability: -0.3, goal: { score: 1300, inDays: null, isGivenUp: true } },
  // Pages must escape markup and isolate right-to-left text.
  ليلى: { learning: 1.2, ability: 0.3, goal: { score: 1200, inDays: 90 } },
  '<script>alert(1)</script>': { stuck: true, goal: null },
};

const namedLearnerId = (name: string): string => `demo-${name}`;
export const namedLearnerIds = Object.keys(namedLearners).map(namedLearnerId);

export function drawNamedLearner(draws: Draws, place: number, from: number, to: number) {
  const [name, { begins, leaves = 0, goal, ...kind }] = Object.entries(namedLearners)[place] as [
    string,
    NamedLearner,
  ];
  const stay = { from: begins === undefined ? from : to - begins * dayMs, to: to - leaves * dayMs };
  const drawn = { ...drawLearner(draws, place, from, to), ...defaultKind };
  return { ...drawn, ...kind, ...stay, userId: namedLearnerId(name), sure: 0, device: 'web', goal };
}

/** Without the named learners. */
export const maxLearners = 1000;

export const demoLearnerId = (number: number): string => `demo-${`${number}`.padStart(3, '0')}`;

export type DemoLearner = ReturnType<typeof drawLearner>;

/**
 * @param number from 1
 * @param from, to Unix milliseconds
 */
export function drawLearner(draws: Draws, number: number, from: number, to: number) {
  const place = draws.between(0, 1);
  const kind = { ...defaultKind, ...learnerKinds.find(({ upTo }) => place < upTo) };
  const begins = from + 7 * dayMs * draws.pick(cohortStartWeeks);
  const leaves = draws.chance(0.25) ? begins + 7 * dayMs * draws.whole(2, 16) : to;
  const device = draws.between(0, 1);
  const about = (figure: number): number => figure * draws.between(0.7, 1.3);
  return {
    ...{ userId: demoLearnerId(number), from: begins, to: Math.min(to, leaves) },
    ...{ ...kind, sessions: about(kind.sessions), answers: about(kind.answers) },
    ...{ rapid: about(kind.rapid), learning: about(kind.learning), ability: draws.normal(kind.ability, 0.8) },
    /** Offset of the confidence; null: never asked. */
    sure: draws.chance(0.65) ? draws.normal(draws.chance(0.2) ? 1.2 : 0, 0.2) : null,
    /** Probability of forgetting a skill, per idle day. */
    forgets: draws.between(0.004, 0.02),
    /** `offline` sends days later; `old` sends no event ids, and some answers twice. */
    device: device < 0.05 ? 'offline' : device < 0.1 ? 'old' : 'web',
  };
}
