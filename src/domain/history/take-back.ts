/**
 * A learner's history without one of its answers. What an update took from outside the learner is each row's own;
 * what followed from the learner's states follows from the new ones.
 */

import { type Conditions, predictAgain } from '../answer/conditions.js';
import { dayMs } from '../base/days.js';
import { modelVersion } from '../base/params.js';
import type { ItemModel, TenantModel } from '../catalogue/tenant-model.js';
import { meanMastery, practisedSkills } from '../learner/skill-view.js';
import { type AnswerStates, closesDay, type LearnerState } from '../tracing/states.js';
import { type TotalContext, takeBaseline } from './baseline.js';
import {
  type Replay,
  type ReplayedAnswer,
  type ReplayedStates,
  type ReplayRow,
  startReplay,
} from './replay.js';

/** What is in force now; it tells what later answers were counted with where it tells what they were counted with before. */
export interface TakeBackContext extends TotalContext {
  readonly findItem: (itemId: string) => ItemModel | null;
  /** The learner's baseline now, which older rows do not tell. */
  readonly baselineTotal: number | null;
  /** Of the learner's record without the answer. */
  readonly version: number;
}

/** A row as it has to be written anew. */
export interface RewrittenRow<Row> extends ReplayedAnswer {
  readonly row: Row;
  readonly conditions: Conditions;
  readonly learnerSeq: number;
  readonly learnerVersion: number;
  readonly baselineTotal: number | null;
}

export interface TakenBack<Row> {
  /** In order: the rows after the answer, and all those of the last commit, whose version is the new one. */
  readonly rewritten: readonly RewrittenRow<Row>[];
  /** Null where no answer is left. */
  readonly states: ReplayedStates | null;
}

/**
 * @param rows without gaps, those of the snapshot left out
 * @param from states that the rows follow on; null where the first is the learner's first
 * @param taken place of the row that goes
 */
export function takeBack<Row extends ReplayRow>(
  rows: readonly Row[],
  from: ReplayedStates | null,
  taken: number,
  context: TakeBackContext,
): TakenBack<Row> {
  const left = rows.toSpliced(taken, 1);
  const lastCommit = beginningOfLastCommit(left);
  const [told, without] = [startReplay(from), startReplay(from, context.baselineTotal)];
  const before = from?.learner.attempts ?? 0;
  const rewritten: RewrittenRow<Row>[] = [];
  left.forEach((row, place) => {
    if (place === taken) told.add(rows[taken] as Row);
    const learnerSeq = before + place + 1;
    const learnerVersion = place < lastCommit ? row.figures.learnerVersion : context.version;
    const numbered = { ...row, figures: { ...row.figures, learnerSeq, learnerVersion } };
    const newClose = place === taken ? closeOf(rows[taken]) : null;
    const states = without.before(numbered);
    const known =
      place < taken ? row.conditions : conditionsNow(told, without, states, row, newClose, context);
    const { modelVersion: countedBy, baselineTotal } =
      place < taken ? row.figures : { ...states.learner, modelVersion };
    const figures = { learnerSeq, learnerVersion, modelVersion: countedBy, baselineTotal };
    const answer = without.add({ event: row.event, figures, conditions: known });
    told.add(row);
    if (place >= taken) takeBaseline(without, row.event.occurredAt, context);
    if (place < Math.min(taken, lastCommit)) return;
    const baseline = without.learner().baselineTotal;
    rewritten.push({ row, conditions: known, ...answer, ...figures, baselineTotal: baseline });
  });
  return { rewritten, states: left.length === 0 ? from : without.states() };
}

/** Place of the first row that was committed with the last one. */
function beginningOfLastCommit(rows: readonly ReplayRow[]): number {
  const version = rows.at(-1)?.figures.learnerVersion ?? 0;
  let first = rows.length - 1;
  while (version > 0 && first > 0 && rows[first - 1]?.figures.learnerVersion === version) first -= 1;
  return Math.max(first, 0);
}

const closeOf = (row: ReplayRow | undefined): number | null => row?.conditions.closedMastery ?? null;

/**
 * What a later row is counted with now. Where the model in force does not tell what stands in the row, it was counted
 * under another one, and its own figures stay.
 */
function conditionsNow(
  told: Replay,
  without: Replay,
  states: AnswerStates,
  row: ReplayRow,
  newClose: number | null,
  context: TakeBackContext,
): Conditions {
  const { event, conditions } = row;
  const { model } = context;
  const item = event.itemId === null ? null : context.findItem(event.itemId);
  const predicted = (from: AnswerStates): number =>
    predictAgain(model, event.skillId, item, from, event, conditions);
  const isInForce = predicted(told.before(row)) === conditions.pCorrect;
  return {
    ...conditions,
    pCorrect: isInForce ? predicted(states) : conditions.pCorrect,
    closedMastery: closedNow(told, without, states.learner, row, newClose, model),
  };
}

/** Sums of doubles in another order differ by less. */
const sameMastery = 1e-9;

/** @param newClose of the answer that goes, where this is the one behind it: it may be the first of its day now */
function closedNow(
  told: Replay,
  without: Replay,
  learner: LearnerState,
  row: ReplayRow,
  newClose: number | null,
  model: TenantModel,
): number | null {
  if (!closesDay(learner, row.event)) return null;
  const now = closedMastery(without, learner, model);
  const stored = closeOf(row);
  if (stored === null || now === null) return now === null ? null : (newClose ?? now);
  const then = closedMastery(told, told.before(row).learner, model);
  return then !== null && Math.abs(then - stored) < sameMastery ? stored + (now - then) : stored;
}

const closedMastery = (replay: Replay, { activity }: LearnerState, model: TenantModel): number | null =>
  meanMastery(practisedSkills(replay.skills, model), (activity.day + 1) * dayMs);
