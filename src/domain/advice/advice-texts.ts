/** At most 200 characters. Texts promise no result. */

import type { PerSection, Section } from '../base/common.js';
import type { GoalOutlook, LearnerForecast } from '../score/learner-forecast.js';
import { adviceConstants } from './advice-constants.js';

export const locales = ['en'] as const;
export type Locale = (typeof locales)[number];

interface WeakSkillFigures {
  readonly section: Section | null;
  readonly isTop: boolean;
  /** Points per hour; null if unknown. */
  readonly points: number | null;
}

/** A goal that the forecast misses by its date, or within a year. */
export type GoalFigures = Pick<GoalOutlook, 'targetScore' | 'targetDate' | 'isLost'> &
  Pick<LearnerForecast, 'neededRate'>;

/** Percentages, 1 to 99. */
interface NextItemFigures {
  readonly chance: number;
  readonly target: number;
  readonly days: number;
}

const sectionNames: PerSection<string> = { math: 'Math', rw: 'Reading and Writing' };

const formatCount = (number: number, one: string): string => `${number} ${one}${number === 1 ? '' : 's'}`;

const formatChance = (percent: number): string => `about ${percent}% chance of a right answer`;

const skillTexts = {
  PLATEAU: (skill: string, attempts: number) =>
    `Change approach on ${skill}: ${attempts} recent attempts brought little progress. Study a worked example, then try easier questions.`,
  OVERCONFIDENT: (skill: string, points: number) =>
    `Slow down on ${skill}: your confidence is ${points} percentage points ahead of your accuracy.`,
  RAPID: (skill: string, seconds: number) =>
    `Take more time on ${skill}: many answers came in under ${seconds} s.`,
  UNDERCONFIDENT: (skill: string) => `Trust your work on ${skill}: accuracy exceeds your confidence.`,
};

const english = {
  answer: {
    ...skillTexts,
    REVIEW_DUE: (skill: string, days: number) =>
      `Review ${skill}: it was strong but had not been practised for ${days} days.`,
    READY: (skill: string) => `${skill} is mastered: move on to the next skill.`,
  },
  study: {
    ...skillTexts,
    REVIEW_DUE: (skill: string, days: number) =>
      `Review ${skill}: it was strong but has not been practised for ${days} days.`,
    SLOW: (skill: string) => `Practise ${skill} against the clock: accurate, but slower than typical.`,
    WEAK_SKILL: (skill: string, { section, isTop, points }: WeakSkillFigures) => {
      const place = section === null ? '' : ` (${sectionNames[section]})`;
      const gain = points === null ? '' : `about ${formatCount(points, 'point')} per hour`;
      if (isTop) return `Focus on ${skill}${place}: highest expected gain${gain && `, ${gain}`}.`;
      return `Focus on ${skill}${place}: mastery is still low${gain && `, expected gain ${gain}`}.`;
    },
    EXPLORE: (skill: string, section: Section) =>
      `Try ${skill}: no answers yet, so the ${sectionNames[section]} forecast is uncertain.`,
    READY: (skill: string, next: string) => `${skill} is mastered: move on to ${next}.`,
    DECLINE: (points: number) =>
      `Recent results are weaker: about ${points} in 100 fewer answers are right than before. Take a break, or review the basics before new skills.`,
    NO_SECTION: (section: Section, other: Section) =>
      `Answer some ${sectionNames[section]} questions to replace the estimate borrowed from ${sectionNames[other]}.`,
    GOAL_GAP: ({ targetScore, targetDate, neededRate, isLost }: GoalFigures) => {
      const until = targetDate === null ? 'within a year' : `by ${targetDate}`;
      const missed = isLost ? 'is reached and lost again' : 'is not reached';
      const aim =
        neededRate && `: aim for about ${formatCount(neededRate, 'question')} every day in each section`;
      return `At the current pace ${targetScore} ${missed} ${until}${aim ?? ''}.`;
    },
  },
  nextItem: {
    ANSWERED_RECENTLY: () => 'Answered right within the last hour: other questions come first.',
    REVIEW_DUE: (skill: string, { days, chance }: NextItemFigures) =>
      `Review ${skill}: strong once, not practised for ${days} days; ${formatChance(chance)}.`,
    MASTERED: (skill: string) => `${skill} is mastered: little is left to gain.`,
    NEW_SKILL: (skill: string, { chance }: NextItemFigures) =>
      `New skill ${skill}, no answer yet: ${formatChance(chance)}.`,
    RIGHT_LEVEL: (skill: string, { chance }: NextItemFigures) =>
      `Right level on ${skill}: ${formatChance(chance)}.`,
    HARDER_THAN_TARGET: (skill: string, { chance, target }: NextItemFigures) =>
      `Rather hard on ${skill}: ${formatChance(chance)}, below the ${target}% aimed at.`,
    EASIER_THAN_TARGET: (skill: string, { chance, target }: NextItemFigures) =>
      `Rather easy on ${skill}: ${formatChance(chance)}, above the ${target}% aimed at.`,
  },
  none: {
    IDLE: (days: number) =>
      `There were no answers for ${days} days: some new ones would show what is still there.`,
    FEW: (answers: number) => `No skill has ${answers} answers yet: too few to tell what to do next.`,
    DONE: () => 'All skills with answers are mastered, and the catalogue has no others to go on to.',
    STEADY: () => 'No skill stands out: none is weak, stuck or forgotten, so go on with all of them.',
  },
};

export type StudyTexts = (typeof english)['study'];

export const adviceTexts: Readonly<Record<Locale, typeof english>> = { en: english };

const { maxLength } = adviceConstants;

/** Shortens names by whole characters until the text fits. */
export function withNames(text: (...names: string[]) => string, ...names: string[]): string {
  const whole = text(...names);
  if (whole.length <= maxLength) return whole;
  let remaining = maxLength - text(...names.map(() => '')).length;
  const cut = names.map((name, i) => {
    const others = names.slice(i + 1);
    const share = Math.floor(remaining / (others.length + 1));
    const shortened = shorten(name, Math.max(remaining - others.join('').length, share));
    remaining -= shortened.length;
    return shortened;
  });
  return text(...cut);
}

function shorten(text: string, length: number): string {
  if (text.length <= length) return text;
  let start = '';
  for (const character of text) {
    if (start.length + character.length >= length) break;
    start += character;
  }
  return `${start}…`;
}
