import { orderCandidates } from '../../src/domain/advice/next-items.js';
import { dayMs } from '../../src/domain/base/common.js';
import { indices } from '../../src/lists.js';
import { createEngine, type Engine, type ServedSchool } from './engine.js';
import { type Item, itemsPerSkill, type Learner, skillCount } from './world.js';

interface StudyMoment {
  readonly bank: readonly Item[];
  readonly engine: Engine;
  readonly learner: Learner;
  /** Unix milliseconds. */
  readonly now: number;
  readonly answers: number;
}

export type Policy = (moment: StudyMoment) => Item;

const allSkills = indices(skillCount);

const selectItems = (bank: readonly Item[], skill: number): readonly Item[] =>
  bank.slice(skill * itemsPerSkill, (skill + 1) * itemsPerSkill);

/** Skills that the engine does not call mastered; all skills if there are none. */
function listOpenSkills({ engine, now }: StudyMoment): number[] {
  const mastered = engine.masteredAt(now);
  const open = allSkills.filter((skill) => !mastered[skill]);
  return open.length === 0 ? allSkills : open;
}

const pickItem = ({ bank, learner }: StudyMoment, skill: number): Item =>
  learner.draws.pick(selectItems(bank, skill));

const findLeast = <Of>(all: readonly Of[], value: (one: Of) => number): Of =>
  all.reduce((best, one) => (value(one) < value(best) ? one : best));

function findWeakestSkill({ engine, now }: StudyMoment): number {
  const masteries = engine.masteriesAt(now);
  return findLeast(allSkills, (skill) => masteries[skill] ?? 0);
}

function selectFirstItem({ engine, now }: StudyMoment, items: readonly Item[], target: number): Item {
  const [first] = orderCandidates(engine.candidatesAt(items, now), target, 1);
  return items[first?.index ?? 0] as Item;
}

const createNextItemPolicy =
  (target: number): Policy =>
  (moment) =>
    selectFirstItem(moment, moment.bank, target);

export const policies = {
  'next-items, .75': createNextItemPolicy(0.75),
  'next-items, .60': createNextItemPolicy(0.6),
  'next-items, .90': createNextItemPolicy(0.9),
  'next-items, .75, skills not reported mastered': (moment) => {
    const open = new Set(listOpenSkills(moment));
    return selectFirstItem(
      moment,
      moment.bank.filter(({ skill }) => open.has(skill)),
      0.75,
    );
  },
  'random items': ({ bank, learner }) => learner.draws.pick(bank),
  'random, skills not reported mastered': (moment) =>
    pickItem(moment, moment.learner.draws.pick(listOpenSkills(moment))),
  'least mastered first': (moment) => pickItem(moment, findWeakestSkill(moment)),
  'least mastered first, item by next-items': (moment) =>
    selectFirstItem(moment, selectItems(moment.bank, findWeakestSkill(moment)), 0.75),
  'fixed order, each skill until reported mastered': (moment) => {
    const open = moment.engine.masteredAt(moment.now).indexOf(false);
    return pickItem(moment, open < 0 ? moment.answers % skillCount : open);
  },
  /** An upper bound for every policy. */
  'oracle with the true state': ({ bank, learner }) =>
    findLeast(bank, (item) => (learner.isMastered(item.skill) ? 0 : -learner.teaches(item))),
} satisfies Record<string, Policy>;

export type PolicyName = keyof typeof policies;

const sitting = { answers: 40, msEach: 75_000, begins: Date.UTC(2026, 0, 5, 9) };
export const maxAnswers = 4000;

/** Number of answers until an event. */
export interface Course {
  /** All skills, and nine of ten, were truly mastered. */
  readonly all: number;
  readonly most: number;
  /** The engine had called each skill mastered once. */
  readonly called: number;
}

export function runStudy(
  policy: Policy,
  { bank, learner, served, limit = maxAnswers }: StudyRun,
  onAnswer: (item: Item, isCorrect: boolean, at: number) => void = () => undefined,
): Course {
  const engine = createEngine(served);
  const called = new Set<number>();
  const course = { all: limit, most: limit, called: limit };
  for (let answers = 0; answers < limit && Math.max(course.all, course.called) === limit; answers++) {
    const place = answers % sitting.answers;
    if (place === 0) learner.sleep();
    const now = sitting.begins + (dayMs * (answers - place)) / sitting.answers + sitting.msEach * place;
    const item = policy({ bank, engine, learner, now, answers });
    const isCorrect = learner.answer(item);
    engine.count(item, isCorrect, now);
    onAnswer(item, isCorrect, now);
    const mastered = allSkills.filter((skill) => learner.isMastered(skill)).length;
    if (mastered >= 0.9 * skillCount) course.most = Math.min(course.most, answers + 1);
    if (mastered === skillCount) course.all = Math.min(course.all, answers + 1);
    if (engine.masteredAt(now)[item.skill]) called.add(item.skill);
    if (called.size === skillCount) course.called = Math.min(course.called, answers + 1);
  }
  return course;
}

export interface StudyRun {
  readonly bank: readonly Item[];
  readonly learner: Learner;
  readonly served: ServedSchool;
  readonly limit?: number;
}
