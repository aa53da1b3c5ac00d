import { type NonEmpty, sigmoid } from '../base/common.js';
import { courseConstants as model } from '../base/prediction-constants.js';
import { hashKey } from '../base/text-hash.js';

/** Hashed ids; item 0 means no item. A combination of skills counts as one skill. */
export interface QuestionKeys {
  readonly skill: number;
  readonly item: number;
}

export const hashQuestionKeys = (skillIds: NonEmpty<string>, itemId: string | null): QuestionKeys => ({
  skill: hashKey(combineIds(skillIds)),
  item: itemId === null ? 0 : hashKey(itemId),
});

/** Identifies a set of skills in any order. Ids have no line feeds. */
export const combineIds = (skillIds: NonEmpty<string>): string =>
  skillIds.length === 1 ? skillIds[0] : skillIds.toSorted().join('\n');

/** Inverse of `combineIds`, sorted. */
export const splitIds = (key: string): NonEmpty<string> => key.split('\n') as [string, ...string[]];

/** Single precision, as stored. */
export const newCourse = {
  /** Keys, newest first. */
  skills: [] as readonly number[],
  /** Moving averages, -.5 to .5. */
  forms: [] as readonly number[],
  /** Keys; 0 if none. */
  firstSkill: 0,
  secondSkill: 0,
  /** Keys of the last item, and of the last item before the current run on one skill. */
  lastItem: 0,
  itemBeforeRun: 0,
  /** First tries of items: ability, moving average, count. */
  firstAbility: 0,
  firstForm: 0,
  firstTries: 0,
  /** Tries after a wrong answer to the same item. */
  retryAbility: 0,
  retryForm: 0,
  retries: 0,
};

export type Course = Readonly<typeof newCourse>;

/** @param wrongRun wrong answers in a row on the item @param abilityOffset log-odds of a new learner */
export function updateCourse(
  course: Course,
  { skill, item }: QuestionKeys,
  isCorrect: boolean,
  answerNumber: number,
  wrongRun: number,
  abilityOffset: number,
): Course {
  const { skills, forms, firstSkill, secondSkill } = course;
  const skillIndex = skills.indexOf(skill);
  const form = skillIndex < 0 ? 0 : (forms[skillIndex] as number);
  const outcome = isCorrect ? 0.5 : -0.5;
  const isRetry = item !== 0 && wrongRun > 0;
  const isFirst = item !== 0 && wrongRun === 0;
  return {
    skills: moveToFront(skills, skillIndex, skill),
    forms: moveToFront(forms, skillIndex, updateForm(form, outcome, model.formRate)),
    firstSkill: answerNumber === 1 ? skill : firstSkill,
    secondSkill: secondSkill === 0 && firstSkill !== 0 && skill !== firstSkill ? skill : secondSkill,
    lastItem: item,
    itemBeforeRun: skillIndex === 0 ? course.itemBeforeRun : course.lastItem,
    firstAbility: isFirst
      ? updateAbility(course.firstAbility, isCorrect, abilityOffset, model.firstTries, course.firstTries)
      : course.firstAbility,
    firstForm: isFirst ? updateForm(course.firstForm, outcome, model.firstTries.formRate) : course.firstForm,
    firstTries: course.firstTries + (isFirst ? 1 : 0),
    retryAbility: isRetry
      ? updateAbility(
          course.retryAbility,
          isCorrect,
          findRetryOffset(wrongRun),
          model.retries,
          course.retries,
        )
      : course.retryAbility,
    retryForm: isRetry ? updateForm(course.retryForm, outcome, model.retries.formRate) : course.retryForm,
    retries: course.retries + (isRetry ? 1 : 0),
  };
}

function moveToFront(list: readonly number[], index: number, value: number): number[] {
  const moved = [value];
  for (let i = 0; i < list.length && moved.length < model.skills; i++)
    if (i !== index) moved.push(list[i] as number);
  return moved;
}

const updateForm = (form: number, outcome: number, rate: number): number =>
  Math.fround(form + rate * (outcome - form));

/** Elo rating (Pelánek 2016). */
function updateAbility(
  ability: number,
  isCorrect: boolean,
  offset: number,
  { step, fall }: { readonly step: number; readonly fall: number },
  tries: number,
): number {
  const surprise = (isCorrect ? 1 : 0) - sigmoid(ability + offset);
  return Math.fround(ability + (step * surprise) / (1 + fall * tries));
}

/** Log-odds of a correct retry, from two real logs. */
const findRetryOffset = (wrongRun: number): number =>
  model.retryOffsets[Math.min(wrongRun, model.retryOffsets.length) - 1] as number;

/** Key of the last item on another skill; 0 if none. */
export const findPreviousItem = ({ skills, lastItem, itemBeforeRun }: Course, skill: number): number =>
  skills[0] === skill ? itemBeforeRun : lastItem;

/** Key of the first skill other than `skill`; 0 if none. */
export const findCourseSkill = ({ firstSkill, secondSkill }: Course, skill: number): number =>
  firstSkill === skill ? secondSkill : firstSkill;
