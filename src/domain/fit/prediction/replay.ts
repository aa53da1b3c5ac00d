/** Replays a log as it would have been served, and keeps the features of every answer for the fit. */

import { type AnswerLog, everyone, shared } from '../../base/answer-log.js';
import { dayOf } from '../../base/days.js';
import { predictionModel } from '../../base/params.js';
import { rowWidth, writeFeatures } from '../../prediction/features.js';
import { newItemWindow, openWindow, type RememberedItem, recallItem } from '../../tracing/item-window.js';
import {
  type ItemTrace,
  type LearnerTrace,
  newItemTrace,
  newLearnerTrace,
  newSkillTrace,
  type SkillTrace,
  type TracedAnswer,
  updateTraces,
} from '../../tracing/traces.js';
import { difficultyAt, shiftAt, type TracedModel, traceLog } from '../bkt/trace.js';
import { type AbilityOffsets, abilityOffset } from './offsets.js';

/** What is known of all answers of a log, by place. Memory that threads share: each may fill a range of learners. */
export interface FeatureStore {
  /** `rowWidth` figures per answer. */
  readonly rows: Float32Array;
  /** 1 for answers that count for their item: a learner's first few, and the first of any further day. */
  readonly countsForItem: Uint8Array;
  /** Log-odds of a right answer without the item's own term, by the last `predictRange`. */
  readonly logits: Float32Array;
}

export const newFeatureStore = ({ skill }: AnswerLog): FeatureStore => ({
  rows: shared.floats(rowWidth * skill.length),
  countsForItem: shared.bytes(skill.length),
  logits: shared.floats(skill.length),
});

interface SkillHistory {
  trace: SkillTrace;
  attempts: number;
  right: number;
}

/** One learner's states while the answers are replayed. */
interface History {
  learner: LearnerTrace;
  readonly skills: Map<number, SkillHistory>;
  readonly items: Map<number, RememberedItem<ItemTrace>>;
  window: typeof newItemWindow;
}

const newHistory = (): History => ({
  learner: newLearnerTrace,
  skills: new Map(),
  items: new Map(),
  window: newItemWindow,
});

/** Fills the store for the learners from `from` to `to` - 1, each answer from the learner's earlier ones. */
export function replayLearners(
  log: AnswerLog,
  from: number,
  to: number,
  model: TracedModel,
  offsets: AbilityOffsets,
  store: FeatureStore,
): void {
  let history = newHistory();
  const replay = (place: number, pCorrect: number, learner: number): void => {
    const nth = place - (log.starts[learner] as number) + 1;
    if (nth === 1) history = newHistory();
    replayAnswer(history, log, place, nth, pCorrect, model, offsets, store);
  };
  traceLog(log, everyone(log), model, replay, from, to);
}

/** @param nth of the answer among all of the learner, from 1 */
function replayAnswer(
  history: History,
  log: AnswerLog,
  place: number,
  nth: number,
  pCorrect: number,
  model: TracedModel,
  offsets: AbilityOffsets,
  store: FeatureStore,
): void {
  const skill = log.skill[place] as number;
  const item = log.item[place] as number;
  const answer = { isCorrect: log.correct[place] === 1, occurredAt: log.at[place] as number };
  const own = skillHistory(history, skill);
  const remembered = item === 0 ? undefined : history.items.get(item);
  const recalled = recallItem(history.window, remembered);
  const traces = {
    learner: history.learner,
    skill: own.trace,
    item: item === 0 ? null : (recalled ?? newItemTrace),
  };
  writeFeatures(store.rows, place * rowWidth, {
    traces,
    bktProbability: Math.fround(pCorrect),
    skillAttempts: own.attempts,
    skillRight: own.right,
    place: nth,
    at: answer.occurredAt,
    difficulty: difficultyAt(log, place, model),
  });
  store.countsForItem[place] = item !== 0 && countsForItem(recalled, answer) ? 1 : 0;
  const offset = abilityOffset(offsets, skill, item, Math.fround(shiftAt(log, place, model)));
  const after = updateTraces(traces, answer, nth, own.attempts, offset);
  history.learner = after.learner;
  own.trace = after.skill;
  own.attempts++;
  if (answer.isCorrect) own.right++;
  if (after.item === null) return;
  history.window = openWindow(history.window, remembered);
  history.items.set(item, { generation: history.window.generation, trace: after.item });
}

function skillHistory({ skills }: History, skill: number): SkillHistory {
  const known = skills.get(skill);
  if (known !== undefined) return known;
  const fresh = { trace: newSkillTrace, attempts: 0, right: 0 };
  skills.set(skill, fresh);
  return fresh;
}

/**
 * Serving counts a learner's first answer of a day alone, so that nobody can move a new item's term by answering it
 * again and again. A fit sees the whole log, and where items are practised often, most of what it knows of them
 * stands in the answers that follow.
 */
function countsForItem(recalled: ItemTrace | null, { occurredAt }: TracedAnswer): boolean {
  if (recalled === null || recalled.right + recalled.wrong < predictionModel.fit.itemAnswersEach) return true;
  return dayOf(recalled.at * 1000) < dayOf(occurredAt);
}
