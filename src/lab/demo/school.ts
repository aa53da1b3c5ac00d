/** The demo's school: skills, questions and learners, drawn from a seed. What they answer is in `answers.ts`. */
import { clamp, dayMs, type Section } from '../../domain/base/common.js';
import { normalQuantile } from '../../domain/base/normal.js';
import { indices } from '../../lists.js';
import { seeded } from '../../seeded.js';

const namesOf: Readonly<Record<Section, string>> = {
  math: `Ratios and rates, Percentages, Linear equations, Linear inequalities, Linear functions, Systems of equations,
Absolute value, Exponents and radicals, Polynomials, Quadratic equations, Nonlinear functions, Rational expressions,
Lines and angles, Triangles, Right triangle trigonometry, Circles, Area and volume, Data and scatterplots, Probability,
Samples and margins of error`,
  rw: `Words in context, Central ideas, Details, Textual evidence, Quantitative evidence, Inferences, Text structure,
Purpose, Paired texts, Transitions, Rhetorical synthesis, Sentence boundaries, Commas, Colons and dashes,
Subject and verb, Pronouns, Verb tenses, Modifiers, Parallel structure, Apostrophes`,
};

/** What makes a skill fit no BKT model: practice teaches nothing, it holds two skills, or learners unlearn before they learn. */
type Oddity = 'unteachable' | 'double' | 'dip';
const oddities: Readonly<Record<string, Oddity>> = {
  'quantitative-evidence': 'unteachable',
  'data-and-scatterplots': 'double',
  'rational-expressions': 'dip',
};

export interface DemoSkill {
  readonly id: string;
  readonly name: string;
  readonly section: Section;
  /** Log-odds: of being known before the first answer, of a right answer without and with knowledge. */
  readonly easiness: number;
  readonly guess: number;
  readonly known: number;
  /** Mean of ln(seconds). */
  readonly logTime: number;
  readonly oddity: Oddity | null;
  readonly items: readonly DemoItem[];
}

export interface DemoItem {
  readonly id: string;
  /** Logits. */
  readonly difficulty: number;
  /** As the authors of the question rated it; null: they did not. */
  readonly rated: number | null;
  /** A wrong option attracts those who know the skill. */
  readonly misleading: boolean;
}

const itemsOfSkill = 15;

export type Draws = ReturnType<typeof drawsOf>;

export function drawsOf(seed: number) {
  const next = seeded(seed);
  const between = (low: number, high: number): number => low + (high - low) * next();
  return {
    chance: (p: number): boolean => next() < p,
    between,
    whole: (low: number, high: number): number => Math.floor(between(low, high + 1)),
    normal: (mean: number, sd: number): number => mean + sd * normalQuantile(between(1e-9, 1 - 1e-9)),
    pick: <Item>(items: readonly Item[]): Item => items[Math.floor(next() * items.length)] as Item,
  };
}

export const sectionSkills = (skills: readonly DemoSkill[], section: Section): DemoSkill[] =>
  skills.filter((skill) => skill.section === section);

/** The ids are the same whatever the seed. */
export function drawSkills(seed: number): DemoSkill[] {
  const draws = drawsOf(seed);
  return (['math', 'rw'] as const).flatMap((section) =>
    namesOf[section].split(/,\s+/).map((name, place) => {
      const misleading = place % 4 === 1 ? draws.whole(0, itemsOfSkill - 1) : null;
      const id = name.toLowerCase().replaceAll(' ', '-');
      return {
        ...{ id, name, section, oddity: oddities[id] ?? null },
        easiness: draws.normal(-0.5, 0.5),
        guess: draws.normal(-1, 0.3),
        known: draws.normal(1.9, 0.3),
        logTime: Math.log(section === 'math' ? draws.between(60, 100) : draws.between(40, 75)),
        items: indices(itemsOfSkill).map((i) => ({
          ...drawItem(draws),
          id: `${id}-${`${i + 1}`.padStart(2, '0')}`,
          misleading: i === misleading,
        })),
      };
    }),
  );
}

function drawItem(draws: Draws): Pick<DemoItem, 'difficulty' | 'rated'> {
  const difficulty = draws.normal(0, 0.7);
  const rated = clamp(Math.round(2 * draws.normal(difficulty, 0.4)) / 2, -3, 3);
  return { difficulty, rated: draws.chance(0.7) ? rated : null };
}

export interface DemoLearner {
  readonly userId: string;
  /** Unix milliseconds of the Monday of the first week, and of the one in which they stop coming. */
  readonly from: number;
  readonly to: number;
  readonly ability: number;
  /** How fast they learn, 1 on average; and whether some skills never move. */
  readonly learning: number;
  readonly stuck: boolean;
  /** Share of weeks in which they come; sessions of such a week, answers of a session. */
  readonly weeks: number;
  readonly sessions: number;
  readonly answers: number;
  readonly crams: boolean;
  /** Share of answers that are guessed in a second or two. */
  readonly rapid: number;
  /** Points on the scale of 1 to 5 by which they feel too sure; null: they are not asked. */
  readonly sure: number | null;
  /** Chance of forgetting a skill on each idle day. */
  readonly forgets: number;
  /** Answers of a device without network come days later; an old app sends no event ids, and some answers twice. */
  readonly device: 'web' | 'offline' | 'old';
}

type Habits = Pick<DemoLearner, 'weeks' | 'sessions' | 'answers' | 'rapid' | 'learning' | 'ability'>;
const usual: Habits = { weeks: 0.85, sessions: 2.4, answers: 8, rapid: 0.01, learning: 1, ability: 0 };

/** Kinds of learners with their share of the school. */
const kinds: readonly (readonly [share: number, Partial<Habits & Pick<DemoLearner, 'stuck' | 'crams'>>])[] = [
  [0.43, {}],
  [0.12, { weeks: 0.95, sessions: 3.8, learning: 1.4, ability: 0.5 }],
  [0.18, { weeks: 0.5, sessions: 2 }],
  [0.12, { weeks: 0.6, sessions: 1.3, crams: true }],
  [0.07, { rapid: 0.3, learning: 0.5, ability: -0.6 }],
  [0.08, { stuck: true, learning: 0.6, ability: -0.4 }],
];

/** Share of learners by the week in which they begin. */
const cohorts: readonly (readonly [share: number, week: number])[] = [
  [0.4, 0],
  [0.2, 2],
  [0.15, 5],
  [0.12, 10],
  [0.08, 16],
  [0.05, 22],
];

/** The entry in whose part of 0 to 1 the number falls. */
function byShare<Value>(table: readonly (readonly [share: number, value: Value])[], at: number): Value {
  let left = at;
  for (const [share, value] of table) {
    left -= share;
    if (left < 0) return value;
  }
  return (table.at(-1) as readonly [number, Value])[1];
}

export const demoLearnerId = (number: number): string => `demo-${`${number}`.padStart(3, '0')}`;

/** @param number from 1. @param from, to Unix milliseconds of the school's first Monday and of its end */
export function drawLearner(draws: Draws, number: number, from: number, to: number): DemoLearner {
  const { stuck = false, crams = false, ...habits } = byShare(kinds, draws.between(0, 1));
  const { ability, learning, weeks, sessions, answers, rapid } = { ...usual, ...habits };
  const begins = from + 7 * dayMs * byShare(cohorts, draws.between(0, 1));
  const ends = draws.chance(0.25) ? begins + 7 * dayMs * draws.whole(2, 16) : to;
  return {
    ...{ userId: demoLearnerId(number), from: begins, to: Math.min(to, ends), stuck, crams, weeks },
    ability: draws.normal(ability, 0.8),
    learning: learning * draws.between(0.7, 1.3),
    sessions: sessions * draws.between(0.7, 1.3),
    answers: answers * draws.between(0.7, 1.3),
    rapid: rapid * draws.between(0.7, 1.3),
    sure: draws.chance(0.65) ? draws.normal(draws.chance(0.2) ? 1.2 : 0, 0.2) : null,
    forgets: draws.between(0.004, 0.02),
    device: byShare(
      [
        [0.9, 'web'],
        [0.05, 'offline'],
        [0.05, 'old'],
      ] as const,
      draws.between(0, 1),
    ),
  };
}
