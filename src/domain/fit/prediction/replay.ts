/** Replays a log as it would have been served, and keeps the features of every answer for the fit. */

import type { AnswerLog } from '../../base/answer-log.js';
import { dayOf } from '../../base/days.js';
import { predictionModel } from '../../base/params.js';
import { type FeatureInput, rowWidth, writeFeatures } from '../../prediction/features.js';
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
import { type AbilityOffsets, abilityOffset } from './offsets.js';

/** What a replay takes beside the answers; columns by place in the log. */
export interface ReplayInput {
  /** Probability of a right answer by BKT, told before the answer. */
  readonly bkt: Float32Array;
  /** Shift of log-odds by the supplied difficulty; null where no difficulties were supplied. */
  readonly shifts: Float32Array | null;
  /** Mean of the supplied difficulties by skill. */
  readonly difficultyMeans: ArrayLike<number>;
  readonly offsets: AbilityOffsets;
}

/** Features of all answers of a log. Memory that threads share: each may fill a range of learners. */
export interface FeatureStore {
  /** `rowWidth` figures per answer, by place in the log. */
  readonly rows: Float32Array;
  /** 1 for answers that count for their item: a learner's first few, and the first of any further day. */
  readonly countsForItem: Uint8Array;
}

export const newFeatureStore = (answers: number): FeatureStore => ({
  rows: new Float32Array(new SharedArrayBuffer(4 * rowWidth * answers)),
  countsForItem: new Uint8Array(new SharedArrayBuffer(answers)),
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

/** Fills the store for the learners from `from` to below `to`, each answer from the learner's earlier ones. */
export function replayLearners(
  log: AnswerLog,
  from: number,
  to: number,
  input: ReplayInput,
  store: FeatureStore,
): void {
  for (let learner = from; learner < to; learner++) {
    const history: History = {
      learner: newLearnerTrace,
      skills: new Map(),
      items: new Map(),
      window: newItemWindow,
    };
    const start = log.starts[learner] as number;
    const end = log.starts[learner + 1] as number;
    for (let place = start; place < end; place++) {
      replayAnswer(history, log, place, place - start + 1, input, store);
    }
  }
}

function replayAnswer(
  history: History,
  log: AnswerLog,
  at: number,
  place: number,
  input: ReplayInput,
  store: FeatureStore,
): void {
  const skill = log.skill[at] as number;
  const item = log.item[at] as number;
  const answer = { isCorrect: log.correct[at] === 1, occurredAt: log.at[at] as number };
  const own = skillHistory(history, skill);
  const remembered = item === 0 ? undefined : history.items.get(item);
  const recalled = recallItem(history.window, remembered);
  const traces = {
    learner: history.learner,
    skill: own.trace,
    item: item === 0 ? null : (recalled ?? newItemTrace),
  };
  const before: FeatureInput = {
    traces,
    bktProbability: input.bkt[at] as number,
    skillAttempts: own.attempts,
    skillRight: own.right,
    place,
    at: answer.occurredAt,
    difficulty: difficultyAt(log, at, input.difficultyMeans),
  };
  writeFeatures(store.rows, at * rowWidth, before);
  store.countsForItem[at] = item !== 0 && countsForItem(recalled, answer) ? 1 : 0;
  const shift = input.shifts === null ? 0 : (input.shifts[at] as number);
  const offset = abilityOffset(input.offsets, skill, item, shift);
  const after = updateTraces(traces, answer, place, own.attempts, offset);
  history.learner = after.learner;
  own.trace = after.skill;
  own.attempts++;
  if (answer.isCorrect) own.right++;
  if (after.item !== null) keepItem(history, item, remembered, after.item);
}

function skillHistory({ skills }: History, skill: number): SkillHistory {
  const known = skills.get(skill);
  if (known !== undefined) return known;
  const fresh = { trace: newSkillTrace, attempts: 0, right: 0 };
  skills.set(skill, fresh);
  return fresh;
}

function keepItem(
  history: History,
  item: number,
  remembered: RememberedItem<ItemTrace> | undefined,
  trace: ItemTrace,
): void {
  history.window = openWindow(history.window, remembered);
  history.items.set(item, { generation: history.window.generation, trace });
}

function difficultyAt({ difficulty, skill }: AnswerLog, at: number, means: ArrayLike<number>): number | null {
  const supplied = difficulty[at] as number;
  return Number.isNaN(supplied) ? null : supplied - (means[skill[at] as number] ?? 0);
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
