/**
 * A right answer must never lower, and a wrong one never raise, the probability of other items of the skill.
 */
import { applyAnswer } from '../../domain/answer/apply-answer.js';
import { type AnswerLog, countSkillSets } from '../../domain/base/answer-log.js';
import { type AnswerStates, findLiveTrace } from '../../domain/tracing/learner-states.js';
import { distinct } from '../../lists.js';
import type { Split } from './answers.js';
import { type AskedQuestion, buildQuestion, type ReplayMoment, type ServedModel } from './replay.js';

export type MonotoneCheck = ReturnType<typeof createProbes>['check'];

/** Probes per log, evenly spread over its answers. */
const targetProbes = 51_000;
const maxProbesPerAnswer = 20;
/** Smaller differences are rounding errors. */
const roundingTolerance = 1e-12;

/**
 * Each probe applies both outcomes of an answer and compares another item's probability before and after. If
 * a skill has too few items, the probe uses hypothetical answers on other skills.
 */
export function createProbes(served: ServedModel, { training, test }: Split) {
  const itemsOf = groupItemsBySkill([training, test]);
  const check = { probes: 0, metItems: 0, rightLowers: 0, wrongRaises: 0, furthest: 0 };
  const met = createMetItems();
  let due = 0;
  let turn = 0;

  /** @returns number of probes, at most `most` */
  function probe(asked: AskedQuestion, known: readonly number[], most: number): number {
    const others = selectProbeItems(known, itemsOf[asked.set] as readonly number[], asked.item, most, turn++);
    const before = check.probes;
    const outcomes = { right: applyOutcome(asked, true), wrong: applyOutcome(asked, false) };
    for (const other of others) {
      const moves = computeChanges(asked, outcomes, other);
      if (moves === null) continue;
      check.probes++;
      if (known.includes(other)) check.metItems++;
      if (-moves.right > roundingTolerance) check.rightLowers++;
      if (moves.wrong > roundingTolerance) check.wrongRaises++;
      const furthest = Math.max(-moves.right, moves.wrong);
      if (furthest > roundingTolerance) check.furthest = Math.max(check.furthest, furthest);
    }
    return check.probes - before;
  }

  function visit(moment: ReplayMoment): void {
    const { history, set, item, answer } = moment;
    const known = met.of(history);
    due += targetProbes / test.correct.length;
    let left = Math.min(maxProbesPerAnswer, Math.floor(due));
    for (let i = 0; i < itemsOf.length && left > 0; i++) {
      const other = (set + (i === 0 ? 0 : turn)) % itemsOf.length;
      const items = itemsOf[other] as readonly number[];
      const asked =
        i === 0 ? moment : buildQuestion(served, history, other, items[turn % items.length] ?? 0, answer);
      const done = probe(asked, known.get(other) ?? [], left);
      [left, due] = [left - done, due - done];
    }
    met.add(set, item);
  }

  return { check, visit };
}

function groupItemsBySkill(logs: readonly AnswerLog[]): (readonly number[])[] {
  const found = Array.from({ length: logs[0] ? countSkillSets(logs[0]) : 0 }, () => new Set<number>());
  for (const { skill, item } of logs)
    for (let i = 0; i < skill.length; i++)
      if (item[i] !== 0) found[skill[i] as number]?.add(item[i] as number);
  return found.map((items) => [...items].sort((a, b) => a - b));
}

/** Items of the current learner by skill, the latest last. */
function createMetItems() {
  let [current, met] = [null as ReplayMoment['history'] | null, new Map<number, number[]>()];
  return {
    of(history: ReplayMoment['history']): ReadonlyMap<number, readonly number[]> {
      if (history !== current) [current, met] = [history, new Map()];
      return met;
    },
    add(skill: number, item: number): void {
      const items = met.get(skill) ?? [];
      if (item !== 0)
        met.set(skill, [...items.filter((one) => one !== item).slice(-maxProbesPerAnswer), item]);
    },
  };
}

/**
 * Alternates no item (0), the learner's items (latest first), and all items of the skill.
 * @param turn first kind, and start in all items
 */
function selectProbeItems(
  met: readonly number[],
  items: readonly number[],
  answered: number,
  limit: number,
  turn: number,
): number[] {
  const kinds = [
    () => 0,
    (i: number) => met[met.length - 1 - i],
    (i: number) => items[(Math.floor(turn / 3) + i) % items.length],
  ] as const;
  const picked = Array.from({ length: 3 * (limit + 1) }, (_, i) =>
    kinds[(turn + i) % 3]?.(Math.floor(i / 3)),
  );
  return distinct(picked)
    .filter((item) => item !== undefined)
    .filter((item) => item !== answered || item === 0)
    .slice(0, limit);
}

const applyOutcome = ({ answer, states, conditions }: AskedQuestion, isCorrect: boolean) =>
  applyAnswer(states, { ...answer, isCorrect }, conditions);

/** Null if the answer evicts the other item from the learner's window. */
function computeChanges(
  { statesOn, conditionsOn }: AskedQuestion,
  { right, wrong }: Readonly<Record<'right' | 'wrong', ReturnType<typeof applyOutcome>>>,
  other: number,
) {
  const now = statesOn(other);
  const after = (states: ReturnType<typeof applyOutcome>): AnswerStates => ({
    ...states,
    keys: now.keys,
    item: now.item,
  });
  if (isItemRemembered(now) && !isItemRemembered(after(right))) return null;
  const chance = (of: AnswerStates): number => conditionsOn(other, of).pCorrect;
  return { right: chance(after(right)) - chance(now), wrong: chance(after(wrong)) - chance(now) };
}

const isItemRemembered = ({ learner, item }: AnswerStates): boolean =>
  item !== null && findLiveTrace(learner.items, item) !== null;
