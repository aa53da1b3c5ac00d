/** A learner's history without one of its answers. What an update took from outside the learner is each row's own. */
import { type Conditions, predictAgain } from '../answer/conditions.js';
import { dayMs } from '../base/common.js';
import type { ItemModel, TenantModel } from '../catalogue/tenant-model.js';
import { meanMastery, practisedSkills, viewSkills } from '../learner/skill-view.js';
import { lacksBaseline } from '../score/goal.js';
import { currentTotal } from '../score/score.js';
import { type AnswerStates, closesDay, type LearnerState } from '../tracing/states.js';
import {
  type Replay,
  type ReplayedAnswer,
  type ReplayedStates,
  type ReplayRow,
  startReplay,
} from './replay.js';

/** What a total depends on beside the learner. */
export interface TotalContext {
  readonly model: TenantModel;
  /** Number of different skills that the tenant set, or that learners enough answered. */
  readonly knownSkills: number;
}

/** What is in force now. */
export interface RetractionContext extends TotalContext {
  readonly findItem: (itemId: string) => ItemModel | null;
  /** Of the learner's record without the answer. */
  readonly version: number;
}

export interface RewrittenRow<Row> extends ReplayedAnswer {
  readonly row: Row;
  readonly conditions: Conditions;
  readonly learnerSeq: number;
  readonly learnerVersion: number;
  readonly baselineTotal: number | null;
}

/**
 * @param rows without gaps, those of the snapshot left out
 * @param from states that the rows follow on; null where the first is the learner's first
 * @param removed place of the row that goes
 * @returns the rows after it and all of the last commit, with the new version; and the states
 */
export function replayWithout<Row extends ReplayRow>(
  rows: readonly Row[],
  from: ReplayedStates | null,
  removed: number,
  context: RetractionContext,
): { readonly rewritten: readonly RewrittenRow<Row>[]; readonly states: ReplayedStates | null } {
  const left = rows.toSpliced(removed, 1);
  const lastCommit = startOfLastCommit(left);
  const [old, without] = [startReplay(from), startReplay(from)];
  const seqBefore = from?.learner.attempts ?? 0;
  const rewritten: RewrittenRow<Row>[] = [];
  for (const [place, row] of left.entries()) {
    const follows = place >= removed;
    if (place === removed) old.add(rows[removed] as Row);
    const learnerSeq = seqBefore + place + 1;
    const learnerVersion = place < lastCommit ? row.figures.learnerVersion : context.version;
    const states = without.before({ ...row, figures: { ...row.figures, learnerSeq, learnerVersion } });
    const oldClose = place === removed ? closeOf(rows[removed]) : null;
    const conditions = follows ? conditionsNow(old, without, states, row, oldClose, context) : row.conditions;
    const counted = follows ? states.learner : row.figures;
    const figures = { learnerSeq, learnerVersion, baselineTotal: counted.baselineTotal };
    const answer = without.add({ event: row.event, figures, conditions });
    old.add(row);
    if (follows) takeBaseline(without, row.event.occurredAt, context);
    const { baselineTotal } = without.learner();
    if (follows || place >= lastCommit)
      rewritten.push({ row, conditions, ...answer, learnerSeq, learnerVersion, baselineTotal });
  }
  return { rewritten, states: left.length === 0 ? from : without.states() };
}

/**
 * Takes the total score that progress is measured from (science notes 6.6), where it is due. @param at Unix
 * milliseconds
 */
export function takeBaseline(
  { learner, skills, setBaseline }: Replay,
  at: number,
  context: TotalContext,
): void {
  if (!lacksBaseline(learner())) return;
  const { model, knownSkills } = context;
  const views = viewSkills(skills, model, at);
  setBaseline(currentTotal({ learner: learner(), views, model, knownSkills, now: at }));
}

function startOfLastCommit(rows: readonly ReplayRow[]): number {
  const version = rows.at(-1)?.figures.learnerVersion ?? 0;
  let first = rows.length - 1;
  while (version > 0 && first > 0 && rows[first - 1]?.figures.learnerVersion === version) first -= 1;
  return Math.max(first, 0);
}

const closeOf = (row: ReplayRow | undefined): number | null => row?.conditions.closedMastery ?? null;

/**
 * Where the model in force does not give the prediction of the row, the answer was counted under another one, and its
 * own figures stay. @param oldClose of the retracted answer, for the row behind it, which may open its day now
 */
function conditionsNow(
  old: Replay,
  without: Replay,
  states: AnswerStates,
  row: ReplayRow,
  oldClose: number | null,
  { model, findItem }: RetractionContext,
): Conditions {
  const { event, conditions } = row;
  const item = event.itemId === null ? null : findItem(event.itemId);
  const oldStates = old.before(row);
  const predicted = (from: AnswerStates): number =>
    predictAgain(model, event.skillId, item, from, event, conditions);
  const isInForce = predicted(oldStates) === conditions.pCorrect;
  const close = (): number | null => {
    const now = closedMastery(without, states.learner, model);
    const stored = closeOf(row);
    if (stored === null || now === null) return now === null ? null : (oldClose ?? now);
    const then = closedMastery(old, oldStates.learner, model);
    return then !== null && Math.abs(then - stored) < sameMastery ? stored + (now - then) : stored;
  };
  return {
    ...conditions,
    pCorrect: isInForce ? predicted(states) : conditions.pCorrect,
    closedMastery: closesDay(states.learner, event) ? close() : null,
  };
}

/** Sums of doubles in another order differ by less. */
const sameMastery = 1e-9;

const closedMastery = (replay: Replay, { activity }: LearnerState, model: TenantModel): number | null =>
  meanMastery(practisedSkills(replay.skills, model), (activity.day + 1) * dayMs);
