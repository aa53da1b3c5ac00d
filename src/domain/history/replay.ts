/**
 * A learner's states from the attempt rows alone. Rows carry every number that an update took from outside the
 * learner's own state, so that applying them in their order gives what was committed, byte for byte.
 */

import { type Advice, adviseOn } from '../advice/answer-advice.js';
import { type AnswerEffect, applyAnswer } from '../answer/apply-answer.js';
import type { Conditions } from '../answer/conditions.js';
import type { Answer } from '../base/types.js';
import type { RememberedItem } from '../tracing/item-window.js';
import {
  type AnswerStates,
  type LearnerState,
  newLearner,
  newSkill,
  type SkillState,
} from '../tracing/states.js';
import type { ItemTrace } from '../tracing/traces.js';

/** An attempt row, as far as a replay looks at it. */
export interface ReplayRow {
  readonly event: Answer & { readonly skillId: string; readonly itemId: string | null };
  readonly figures: {
    readonly learnerSeq: number;
    /** Answers of one commit share it. */
    readonly learnerVersion: number;
    /** The learner's baseline after the answer. */
    readonly baselineTotal: number | null;
  };
  readonly conditions: Conditions;
}

/** What the store holds of a learner, beside the goal. */
export interface ReplayedStates {
  readonly learner: LearnerState;
  readonly skills: ReadonlyMap<string, SkillState>;
  /** Items by id: those of generations of even number, and of odd number. */
  readonly items: readonly [even: ReadonlyMap<string, ItemTrace>, odd: ReadonlyMap<string, ItemTrace>];
}

/** What one answer did, and what was advised on it. */
export interface ReplayedAnswer {
  readonly effect: AnswerEffect;
  readonly advice: Advice | null;
}

export type Replay = ReturnType<typeof startReplay>;

/** @param from states that the rows follow on; without them the learner is new */
export function startReplay(from: ReplayedStates | null = null) {
  let learner = from?.learner ?? newLearner;
  const skills = new Map(from?.skills);
  const items = createItems(from);
  let missing = 0;

  /** What the learner's next row is counted from. */
  function before({ event, figures, conditions }: ReplayRow): AnswerStates {
    if (figures.learnerVersion !== learner.version) items.commit(learner.items.generation);
    const skill = skills.get(event.skillId) ?? newSkill(conditions.parameters);
    return { learner, skill, item: event.itemId === null ? null : items.find(event.itemId) };
  }

  function add(row: ReplayRow): ReplayedAnswer {
    const { event, figures, conditions } = row;
    const states = before(row);
    const effect = applyAnswer(states, event, conditions);
    missing += figures.learnerSeq - effect.learner.attempts;
    learner = asCommitted(effect.learner, figures);
    skills.set(event.skillId, effect.skill);
    if (event.itemId !== null && effect.item) items.keep(event.itemId, effect.item);
    return { effect, advice: adviseOn(states.skill, effect, event, conditions) };
  }

  return {
    before,
    add,
    learner: (): LearnerState => learner,
    /** As they are; the next row changes them. */
    skills: skills as ReadonlyMap<string, SkillState>,
    /** Says the baseline after the last row. */
    setBaseline: (baselineTotal: number): void => {
      learner = { ...learner, baselineTotal };
    },
    /** How many answers are missing between the rows. */
    missing: (): number => missing,
    /** The states after the last row. */
    states: (): ReplayedStates => {
      items.commit(learner.items.generation);
      return { learner, skills, items: items.stored };
    },
  };
}

/**
 * Version and baseline are the row's. So is the number: where a row is missing, no later answer may get a number that another
 * one has.
 */
const asCommitted = (
  learner: LearnerState,
  { learnerVersion, learnerSeq, baselineTotal }: ReplayRow['figures'],
): LearnerState => ({
  ...learner,
  version: learnerVersion,
  attempts: learnerSeq,
  baselineTotal,
});

/**
 * The items of both generations as commits leave them: a commit writes each of its items once, into the generation
 * that the item had at its end, and an item of the generation before stays there as it was.
 */
function createItems(from: ReplayedStates | null) {
  const stored = [new Map(from?.items[0]), new Map(from?.items[1])] as const;
  const open = new Map<string, RememberedItem<ItemTrace>>();
  let generation = from?.learner.items.generation ?? 0;

  function find(itemId: string): RememberedItem<ItemTrace> | undefined {
    const found = open.get(itemId) ?? storedItem(itemId, generation);
    return found ?? storedItem(itemId, generation - 1);
  }

  function storedItem(itemId: string, of: number): RememberedItem<ItemTrace> | undefined {
    const trace = of < 0 ? undefined : ofParity(of).get(itemId);
    return trace && { generation: of, trace };
  }

  const ofParity = (of: number): Map<string, ItemTrace> => (of % 2 === 0 ? stored[0] : stored[1]);

  function commit(current: number): void {
    for (let started = Math.max(generation, current - 2) + 1; started <= current; started++)
      ofParity(started).clear();
    generation = current;
    for (const [itemId, item] of open)
      if (item.generation >= current - 1) ofParity(item.generation).set(itemId, item.trace);
    open.clear();
  }

  return {
    stored,
    find,
    keep: (itemId: string, item: RememberedItem<ItemTrace>) => void open.set(itemId, item),
    commit,
  };
}
