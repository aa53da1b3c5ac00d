import { sigmoid } from '../base/common.js';
import { courseModel as model } from '../base/prediction-constants.js';
import { keyOf } from '../base/text-hash.js';

/** Hashed ids; item 0 means no item. */
export interface Asked {
  readonly skill: number;
  readonly item: number;
}

export const askedOf = (skillId: string, itemId: string | null): Asked => ({
  skill: keyOf(skillId),
  item: itemId === null ? 0 : keyOf(itemId),
});

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
  itemBefore: 0,
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
  { skill, item }: Asked,
  isCorrect: boolean,
  place: number,
  wrongRun: number,
  abilityOffset: number,
): Course {
  const { skills, forms, firstSkill, secondSkill } = course;
  const before = skills.indexOf(skill);
  const form = before < 0 ? 0 : (forms[before] as number);
  const outcome = isCorrect ? 0.5 : -0.5;
  const isRetry = item !== 0 && wrongRun > 0;
  const isFirst = item !== 0 && wrongRun === 0;
  return {
    skills: movedToFront(skills, before, skill),
    forms: movedToFront(forms, before, formAfter(form, outcome, model.formRate)),
    firstSkill: place === 1 ? skill : firstSkill,
    secondSkill: secondSkill === 0 && firstSkill !== 0 && skill !== firstSkill ? skill : secondSkill,
    lastItem: item,
    itemBefore: before === 0 ? course.itemBefore : course.lastItem,
    firstAbility: isFirst
      ? abilityAfter(course.firstAbility, isCorrect, abilityOffset, model.firstTries, course.firstTries)
      : course.firstAbility,
    firstForm: isFirst ? formAfter(course.firstForm, outcome, model.firstTries.formRate) : course.firstForm,
    firstTries: course.firstTries + (isFirst ? 1 : 0),
    retryAbility: isRetry
      ? abilityAfter(course.retryAbility, isCorrect, retryOffset(wrongRun), model.retries, course.retries)
      : course.retryAbility,
    retryForm: isRetry ? formAfter(course.retryForm, outcome, model.retries.formRate) : course.retryForm,
    retries: course.retries + (isRetry ? 1 : 0),
  };
}

function movedToFront(list: readonly number[], place: number, value: number): number[] {
  const moved = [value];
  for (let i = 0; i < list.length && moved.length < model.skills; i++)
    if (i !== place) moved.push(list[i] as number);
  return moved;
}

const formAfter = (form: number, outcome: number, rate: number): number =>
  Math.fround(form + rate * (outcome - form));

/** Elo rating (Pelánek 2016). */
function abilityAfter(
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
const retryOffset = (wrongRun: number): number =>
  model.retryOffsets[Math.min(wrongRun, model.retryOffsets.length) - 1] as number;

/** Key of the last item on another skill; 0 if none. */
export const itemBeforeSkill = ({ skills, lastItem, itemBefore }: Course, skill: number): number =>
  skills[0] === skill ? itemBefore : lastItem;

/** Key of the first skill other than `skill`; 0 if none. */
export const courseOf = ({ firstSkill, secondSkill }: Course, skill: number): number =>
  firstSkill === skill ? secondSkill : firstSkill;
