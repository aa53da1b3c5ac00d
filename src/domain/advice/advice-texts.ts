/**
 * All that recommendations say, by language. To add one: its code in `locales`, its texts in the table below. No text
 * promises anything; points are "about". A text has 200 characters: without names at most 140, for names are cut.
 */
import { adviceModel } from '../base/params.js';
import type { PerSection, Section } from '../base/types.js';

export const locales = ['en'] as const;
export type Locale = (typeof locales)[number];

/** Of one skill, the same with an answer and with a forecast. */
interface SkillTexts {
  /** @param attempts recent ones that the plateau was found on */
  PLATEAU(skill: string, attempts: number): string;
  /**
   * The difference stands for confidence and accuracy: the two are not kept apart for the answers that came with a
   * confidence.
   *
   * @param points percentage points that confidence is ahead by
   */
  OVERCONFIDENT(skill: string, points: number): string;
  /** @param seconds that many answers were faster than */
  RAPID(skill: string, seconds: number): string;
  UNDERCONFIDENT(skill: string): string;
}

/** With an answer, about its skill. */
interface AnswerTexts extends SkillTexts {
  /** @param days between the answer and the one before */
  REVIEW_DUE(skill: string, days: number): string;
  READY(skill: string): string;
}

/** What is gained on a weak skill. */
export interface WeakSkillFigures {
  /** Null: the skill counts in both. */
  readonly section: Section | null;
  /** Whether nothing is gained faster on any other skill of the learner. */
  readonly isTop: boolean;
  /** Per hour, whole, 1 or more; null: not known well enough to be told. */
  readonly points: number | null;
}

/** A goal that is not reached in time. */
export interface GoalFigures {
  readonly targetScore: number;
  /** YYYY-MM-DD; null: within a year. */
  readonly targetDate: string | null;
  /** Answers a day in each section that would reach it; null: not known. */
  readonly neededRate: number | null;
  /** Whether it is reached in time, or now, and forgotten by then. */
  readonly isLost: boolean;
}

/** With a forecast. */
export interface StudyTexts extends SkillTexts {
  /** @param days since the last answer */
  REVIEW_DUE(skill: string, days: number): string;
  SLOW(skill: string): string;
  WEAK_SKILL(skill: string, figures: WeakSkillFigures): string;
  EXPLORE(skill: string, section: Section): string;
  READY(skill: string, next: string): string;
  /** @param other section that the estimate is borrowed from */
  NO_SECTION(section: Section, other: Section): string;
  GOAL_GAP(figures: GoalFigures): string;
}

/** Why there is no advice with a forecast. */
export interface NoAdviceTexts {
  /** @param days since the last answer, more than one */
  IDLE(days: number): string;
  /** @param answers on one skill that advice on it takes */
  FEW(answers: number): string;
  DONE(): string;
  STEADY(): string;
}

interface Texts {
  readonly answer: AnswerTexts;
  readonly study: StudyTexts;
  readonly none: NoAdviceTexts;
}

const sectionNames: PerSection<string> = { math: 'Math', rw: 'Reading and Writing' };

const count = (number: number, one: string): string => `${number} ${one}${number === 1 ? '' : 's'}`;

const english: SkillTexts = {
  PLATEAU: (skill, attempts) =>
    `Change approach on ${skill}: ${attempts} recent attempts brought little progress. Study a worked example, then try easier questions.`,
  OVERCONFIDENT: (skill, points) =>
    `Slow down on ${skill}: your confidence is ${points} percentage points ahead of your accuracy.`,
  RAPID: (skill, seconds) => `Take more time on ${skill}: many answers came in under ${seconds} s.`,
  UNDERCONFIDENT: (skill) => `Trust your work on ${skill}: accuracy exceeds your confidence.`,
};

/** All texts of each language. */
export const texts: Readonly<Record<Locale, Texts>> = {
  en: {
    answer: {
      ...english,
      REVIEW_DUE: (skill, days) =>
        `Review ${skill}: it was strong but had not been practised for ${days} days.`,
      READY: (skill) => `${skill} is mastered: move on to the next skill.`,
    },
    study: {
      ...english,
      REVIEW_DUE: (skill, days) =>
        `Review ${skill}: it was strong but has not been practised for ${days} days.`,
      SLOW: (skill) => `Practise ${skill} against the clock: accurate, but slower than typical.`,
      WEAK_SKILL: (skill, { section, isTop, points }) => {
        const place = section === null ? '' : ` (${sectionNames[section]})`;
        const gain = points === null ? '' : `about ${count(points, 'point')} per hour`;
        if (isTop) return `Focus on ${skill}${place}: highest expected gain${gain && `, ${gain}`}.`;
        return `Focus on ${skill}${place}: mastery is still low${gain && `, expected gain ${gain}`}.`;
      },
      EXPLORE: (skill, section) =>
        `Try ${skill}: no answers yet, so the ${sectionNames[section]} forecast is uncertain.`,
      READY: (skill, next) => `${skill} is mastered: move on to ${next}.`,
      NO_SECTION: (section, other) =>
        `Answer some ${sectionNames[section]} questions to replace the estimate borrowed from ${sectionNames[other]}.`,
      GOAL_GAP: ({ targetScore, targetDate, neededRate, isLost }) => {
        const until = targetDate === null ? 'within a year' : `by ${targetDate}`;
        const missed = isLost ? 'is reached and lost again' : 'is not reached';
        const advice =
          neededRate === null
            ? ''
            : `: aim for about ${count(neededRate, 'question')} every day in each section`;
        return `At the current pace ${targetScore} ${missed} ${until}${advice}.`;
      },
    },
    none: {
      IDLE: (days) => `There were no answers for ${days} days: some new ones would show what is still there.`,
      FEW: (answers) => `No skill has ${answers} answers yet: too few to tell what to do next.`,
      DONE: () => 'All skills with answers are mastered, and the catalogue has no others to go on to.',
      STEADY: () => 'No skill stands out: none is weak, stuck or forgotten, so go on with all of them.',
    },
  },
};

const { maxLength } = adviceModel;

/** A text of at most 200 characters: a long name is cut, whole characters at a time. */
export function withName(name: string, text: (name: string) => string): string {
  const whole = text(name);
  return whole.length <= maxLength ? whole : text(shorten(name, maxLength - text('').length));
}

/** The same with two names: each may have half of the room, and what the other leaves of its half. */
export function withNames(
  first: string,
  second: string,
  text: (first: string, second: string) => string,
): string {
  const whole = text(first, second);
  if (whole.length <= maxLength) return whole;
  const room = maxLength - text('', '').length;
  const firstCut = shorten(first, Math.max(room - second.length, room >> 1));
  return text(firstCut, shorten(second, room - firstCut.length));
}

/** The text in at most that many UTF-16 units, with an ellipsis where it was cut. */
function shorten(text: string, length: number): string {
  if (text.length <= length) return text;
  let kept = '';
  for (const character of text) {
    if (kept.length + character.length >= length) break;
    kept += character;
  }
  return `${kept}…`;
}
