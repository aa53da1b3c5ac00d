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

/** A goal that the forecast misses by its date, or within a year, or whose date has passed. */
export type GoalFigures = Pick<GoalOutlook, 'targetScore' | 'targetDate' | 'isLost' | 'status' | 'gap'> &
  Pick<LearnerForecast, 'neededRate'>;

/** Percentages, 1 to 99. */
interface NextItemFigures {
  readonly chance: number;
  readonly target: number;
  readonly days: number;
}

const sectionNames: PerSection<string> = { math: 'Math', rw: 'Reading and Writing' };

const formatCount = (number: number, one: string): string => `${number} ${one}${number === 1 ? '' : 's'}`;

const formatChance = (percent: number): string => `about ${percent}% chance of a correct answer`;

const skillTexts = {
  PLATEAU: (skill: string, attempts: number) =>
    `Change approach on ${skill}: ${attempts} recent attempts brought little progress. Study a worked example, then try easier questions.`,
  OVERCONFIDENT: (skill: string, points: number) =>
    `Slow down on ${skill}: your confidence is ${points} percentage points ahead of your accuracy.`,
  RAPID: (skill: string, seconds: number) =>
    `Take more time on ${skill}: many answers took less than ${seconds} s.`,
  UNDERCONFIDENT: (skill: string) => `Trust your work on ${skill}: accuracy exceeds your confidence.`,
};

export type RangeTerm = keyof typeof rangeChanges;
export const rangeChanges = {
  NO_SECTION: 'Answers',
  FEW_ANSWERS: 'More answers',
  FEW_SKILLS: 'Answers on more skills, or a catalogue of all skills,',
  NOT_FITTED: 'A model fitted to more answers of all learners',
  FAR_HORIZON: 'A shorter horizon',
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
    SLOW: (skill: string) =>
      `Practise ${skill} with a time limit: answers are correct but slower than typical.`,
    WEAK_SKILL: (skill: string, { section, isTop, points }: WeakSkillFigures) => {
      const place = section === null ? '' : ` (${sectionNames[section]})`;
      const gain = points === null ? '' : `about ${formatCount(points, 'point')} per hour`;
      if (isTop) return `Focus on ${skill}${place}: highest expected gain${gain && `, ${gain}`}.`;
      return `Focus on ${skill}${place}: mastery is still low${gain && `, expected gain ${gain}`}.`;
    },
    EXPLORE: (skill: string, section: Section) =>
      `Try ${skill}: no answers yet, so the ${sectionNames[section]} forecast is uncertain.`,
    READY: (skill: string, next: string) => `${skill} is mastered: move on to ${next}.`,
    IDLE: (days: number) =>
      `No answers for ${days} days: skills fade without practice, and forecasts fall slowly. Start with a short review.`,
    DECLINE: (points: number) =>
      `Recent results are weaker: accuracy is about ${points} percentage points lower than before. Take a break, or review the basics before new skills.`,
    NO_SECTION: (section: Section, other: Section) =>
      `Answer some ${sectionNames[section]} questions: this score is currently estimated from ${sectionNames[other]}.`,
    GOAL_GAP: ({ targetScore, targetDate, neededRate, isLost, status, gap }: GoalFigures) => {
      if (status === 'expired')
        return `The goal date ${targetDate} has passed, ${formatCount(gap, 'point')} below ${targetScore}: set a new goal.`;
      const until = targetDate === null ? 'within a year' : `by ${targetDate}`;
      const outcome = isLost
        ? `the score reaches ${targetScore} but falls below it again`
        : `${targetScore} is not reached`;
      const aim =
        neededRate && `: aim for about ${formatCount(neededRate, 'question')} every day in each section`;
      return `At the current pace ${outcome} ${until}${aim ?? ''}.`;
    },
  },
  nextItem: {
    ANSWERED_RECENTLY: () => 'Answered correctly within the last hour: other questions rank first.',
    REVIEW_DUE: (skill: string, { days, chance }: NextItemFigures) =>
      `Review ${skill}: it was strong but has not been practised for ${days} days; ${formatChance(chance)}.`,
    MASTERED: (skill: string) => `${skill} is mastered: practice has little expected gain.`,
    NEW_SKILL: (skill: string, { chance }: NextItemFigures) =>
      `New skill ${skill}, no answers yet: ${formatChance(chance)}.`,
    RIGHT_LEVEL: (skill: string, { chance }: NextItemFigures) =>
      `Suitable difficulty on ${skill}: ${formatChance(chance)}.`,
    HARDER_THAN_TARGET: (skill: string, { chance, target }: NextItemFigures) =>
      `Difficult question on ${skill}: ${formatChance(chance)}, below the target of ${target}%.`,
    EASIER_THAN_TARGET: (skill: string, { chance, target }: NextItemFigures) =>
      `Easy question on ${skill}: ${formatChance(chance)}, above the target of ${target}%.`,
  },
  range: (code: RangeTerm, section: Section | null, percent: number) =>
    `${rangeChanges[code]}${section === null ? '' : ` in ${sectionNames[section]}`} would narrow this range most, by up to ${percent}%.`,
  none: {
    FEW: (answers: number) => `No skill has ${answers} answers yet. Recommendations need more answers.`,
    DONE: () => 'All skills with answers are mastered, and the catalogue has no other skills.',
    STEADY: () => 'No skill is weak, on a plateau or due for review. Continue with all skills.',
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
