/** A learner's states from the attempt rows alone, applied in their order: what was committed, byte for byte. */

import { type Advice, adviseOn } from '../advice/answer-advice.js';
import { type AnswerEffect, applyAnswer } from '../answer/apply-answer.js';
import type { Conditions } from '../answer/conditions.js';
import type { Answer } from '../base/common.js';
import {
  type AnswerStates,
  type LearnerState,
  newLearner,
  newSkill,
  type RememberedItem,
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

  /** Applies the learner's next row. Rows come in the order of `learner_seq`. */
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
    setBaseline: (baselineTotal: number): void => {
      learner = { ...learner, baselineTotal };
    },
    /** How many answers are missing between the rows. */
    missing: () => missing,
    /** The states after the last row. */
    states: (): ReplayedStates => {
      items.commit(learner.items.generation);
      return { learner, skills, items: items.stored };
    },
  };
}

/** Version, number and baseline are the row's: where one is missing, no later answer may get another's number. */
const asCommitted = (
  learner: LearnerState,
  { learnerVersion, learnerSeq, baselineTotal }: ReplayRow['figures'],
): LearnerState => ({
  ...learner,
  version: learnerVersion,
  attempts: learnerSeq,
  baselineTotal,
});

/** The items of both generations as commits leave them: each is written once, into the generation it had at the end. */
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
