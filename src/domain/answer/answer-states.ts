import { dayOf } from '../base/days.js';
import type { Answer } from '../base/types.js';
import { type RememberedItem, recallItem } from '../tracing/item-window.js';
import type { LearnerState, SkillState } from '../tracing/states.js';
import { type ItemTrace, newItemTrace, type Traces } from '../tracing/traces.js';

/** A learner's states that one answer reads and writes. */
export interface AnswerStates {
  readonly learner: LearnerState;
  readonly skill: SkillState;
  /** What is remembered of the item; null for an answer without an item, undefined for one that was never met. */
  readonly item: RememberedItem<ItemTrace> | null | undefined;
}

/** The traces that an answer is predicted from; no item trace where none is remembered. */
export const tracesOf = ({ learner, skill, item }: AnswerStates): Traces => ({
  learner: learner.trace,
  skill: skill.trace,
  item: item === null ? null : (recallItem(learner.items, item) ?? newItemTrace),
});

/**
 * Whether this is the learner's first answer on the item on its day: only those count for the item's difficulty. A
 * late answer is none, or answers dated back would count without end.
 */
export function isFirstOfDay({ learner, item }: AnswerStates, { occurredAt }: Answer): boolean {
  const trace = item === null ? null : recallItem(learner.items, item);
  return trace === null || dayOf(trace.at * 1000) < dayOf(occurredAt);
}
