/** Replays attempt rows to the committed states, byte for byte, with or without one answer. */
import { type Advice, selectAnswerAdvice } from '../advice/answer-advice.js';
import {
  type AnswerConditions,
  repeatPrediction,
  type SkillConditions,
} from '../answer/answer-conditions.js';
import { type AnswerEffect, applyAnswer } from '../answer/apply-answer.js';
import { getCalendar } from '../base/calendar.js';
import { type Answer, mapNonEmpty, type NonEmpty } from '../base/common.js';
import type { ItemModel, TenantModel } from '../catalogue/tenant-model.js';
import { buildSkillViews, collectPractisedSkills, computeMeanMastery } from '../learner/skill-view.js';
import type { ForecastSubject } from '../score/assessment.js';
import { isBaselineDue } from '../score/goal.js';
import { computeCurrentTotal } from '../score/scores.js';
import { hashQuestionKeys } from '../tracing/course.js';
import {
  type AnswerStates,
  computeDayEnd,
  type ItemRecord,
  type LearnerState,
  newLearner,
  newSkill,
  type SkillState,
  startsNewDay,
} from '../tracing/learner-states.js';
import type { ItemTrace } from '../tracing/traces.js';

export interface ReplayRow {
  readonly event: Answer & { readonly skillIds: NonEmpty<string>; readonly itemId: string | null };
  readonly figures: RowFigures;
  readonly conditions: AnswerConditions;
}

interface RowFigures {
  readonly learnerSeq: number;
  /** Shared by all answers of a commit. */
  readonly learnerVersion: number;
  readonly baselineTotal: number | null;
}

export interface ReplayedStates {
  readonly learner: LearnerState;
  readonly skills: ReadonlyMap<string, SkillState>;
  /** Items of even and of odd generations, by item id. */
  readonly items: readonly [even: ReadonlyMap<string, ItemTrace>, odd: ReadonlyMap<string, ItemTrace>];
}

export interface ReplayedAnswer {
  readonly effect: AnswerEffect;
  readonly advice: Advice | null;
}

export type Replay = ReturnType<typeof startReplay>;

/** @param from earlier states; null for a new learner */
export function startReplay(from: ReplayedStates | null = null) {
  let learner = from?.learner ?? newLearner;
  const skills = new Map(from?.skills);
  const items = createItemGenerations(from);
  let missing = 0;

  function before({ event, figures, conditions }: ReplayRow): AnswerStates {
    if (figures.learnerVersion !== learner.version) items.commit(learner.items.generation);
    const item = event.itemId === null ? null : items.find(event.itemId);
    return {
      keys: hashQuestionKeys(event.skillIds, event.itemId),
      learner,
      skills: mapNonEmpty(
        event.skillIds,
        (skillId, i) => skills.get(skillId) ?? newSkill((conditions.skills[i] as SkillConditions).parameters),
      ),
      item,
    };
  }

  function add(row: ReplayRow): ReplayedAnswer {
    const { event, figures, conditions } = row;
    const states = before(row);
    const effect = applyAnswer(states, event, conditions);
    missing += figures.learnerSeq - effect.learner.attempts;
    learner = applyRowFigures(effect.learner, figures);
    for (const [i, skill] of effect.skills.entries()) skills.set(event.skillIds[i] as string, skill);
    if (event.itemId !== null && effect.item) items.keep(event.itemId, effect.item);
    return { effect, advice: selectAnswerAdvice(states, effect, event, conditions) };
  }

  return {
    before,
    add,
    learner: (): LearnerState => learner,
    skills: skills as ReadonlyMap<string, SkillState>,
    setBaseline: (baselineTotal: number): void => {
      learner = { ...learner, baselineTotal };
    },
    missing: () => missing,
    states: (): ReplayedStates => {
      items.commit(learner.items.generation);
      return { learner, skills, items: items.stored };
    },
  };
}

/** Uses the row's numbers, so that a missing row does not shift later answers. */
const applyRowFigures = (
  learner: LearnerState,
  { learnerVersion, learnerSeq, baselineTotal }: RowFigures,
): LearnerState => ({ ...learner, version: learnerVersion, attempts: learnerSeq, baselineTotal });

/** Each item is stored once, in its last generation. */
function createItemGenerations(from: ReplayedStates | null) {
  const stored = [new Map(from?.items[0]), new Map(from?.items[1])] as const;
  const uncommitted = new Map<string, ItemRecord>();
  let generation = from?.learner.items.generation ?? 0;

  const find = (itemId: string): ItemRecord | undefined =>
    uncommitted.get(itemId) ?? storedItem(itemId, generation) ?? storedItem(itemId, generation - 1);

  function storedItem(itemId: string, generationNumber: number): ItemRecord | undefined {
    const trace = generationNumber < 0 ? undefined : generationItems(generationNumber).get(itemId);
    return trace && { generation: generationNumber, trace };
  }

  const generationItems = (generationNumber: number): Map<string, ItemTrace> =>
    generationNumber % 2 === 0 ? stored[0] : stored[1];

  function commit(current: number): void {
    for (let started = Math.max(generation, current - 2) + 1; started <= current; started++)
      generationItems(started).clear();
    generation = current;
    for (const [itemId, item] of uncommitted)
      if (item.generation >= current - 1) generationItems(item.generation).set(itemId, item.trace);
    uncommitted.clear();
  }

  return {
    stored,
    find,
    keep: (itemId: string, item: ItemRecord) => void uncommitted.set(itemId, item),
    commit,
  };
}

type BaselineContext = Pick<ForecastSubject, 'model' | 'registeredSkills'>;

export interface RewriteContext extends BaselineContext {
  readonly findItem: (itemId: string) => ItemModel | null;
  readonly version: number;
}

export interface RewrittenRow<Row> extends ReplayedAnswer, RowFigures {
  readonly row: Row;
  readonly conditions: AnswerConditions;
}

/** @param rows without gaps, after the snapshot `from` @param from null if the rows start with the first answer */
export const replayWithout = <Row extends ReplayRow>(
  rows: readonly Row[],
  from: ReplayedStates | null,
  removedIndex: number,
  context: RewriteContext,
): RewrittenHistory<Row> =>
  replayChanged(rows, from, { rows: rows.toSpliced(removedIndex, 1), removedIndex }, context);

/** Moves the answers to their days in another time zone. @param rows, from as for `replayWithout` */
export function replayInTimeZone<Row extends ReplayRow>(
  rows: readonly Row[],
  from: ReplayedStates | null,
  timeZone: string,
  context: RewriteContext,
): RewrittenHistory<Row> {
  const { toDay } = getCalendar(timeZone);
  const moved = rows.map((row) => ({
    ...row,
    conditions: { ...row.conditions, timeZone, localDay: toDay(row.event.occurredAt) },
  }));
  const { rewritten, states } = replayChanged(rows, from, { rows: moved, removedIndex: null }, context);
  return { rewritten, states: states && { ...states, learner: { ...states.learner, timeZone } } };
}

export interface RewrittenHistory<Row> {
  /** From the first changed row on, and the last commit. */
  readonly rewritten: readonly RewrittenRow<Row>[];
  readonly states: ReplayedStates | null;
}

/** Rows as they should have been. One row is missing, or rows are on other days. */
interface ChangedHistory<Row> {
  readonly rows: readonly Row[];
  readonly removedIndex: number | null;
}

const findFirstMoved = (rows: readonly ReplayRow[], changed: readonly ReplayRow[]): number => {
  const found = rows.findIndex((row, i) => row.conditions.localDay !== changed[i]?.conditions.localDay);
  return found < 0 ? rows.length : found;
};

function replayChanged<Row extends ReplayRow>(
  rows: readonly Row[],
  from: ReplayedStates | null,
  { rows: remaining, removedIndex }: ChangedHistory<Row>,
  context: RewriteContext,
): RewrittenHistory<Row> {
  const firstChanged = removedIndex ?? findFirstMoved(rows, remaining);
  const lastCommit = findLastCommitStart(remaining);
  const [original, reduced] = [startReplay(from), startReplay(from)];
  const seqBefore = from?.learner.attempts ?? 0;
  const rewritten: RewrittenRow<Row>[] = [];
  for (const [index, row] of remaining.entries()) {
    const isLater = index >= firstChanged;
    if (index === removedIndex) original.add(rows[removedIndex] as Row);
    const learnerSeq = seqBefore + index + 1;
    const learnerVersion = index < lastCommit ? row.figures.learnerVersion : context.version;
    const states = reduced.before({ ...row, figures: { ...row.figures, learnerSeq, learnerVersion } });
    const oldClose = index === removedIndex ? (rows[removedIndex]?.conditions.closedMastery ?? null) : null;
    const conditions = isLater
      ? recomputeConditions(original, reduced, states, row, oldClose, context)
      : row.conditions;
    const counted = isLater ? states.learner : row.figures;
    const figures = { learnerSeq, learnerVersion, baselineTotal: counted.baselineTotal };
    const answer = reduced.add({ event: row.event, figures, conditions });
    original.add(rows[isLater ? index + rows.length - remaining.length : index] as Row);
    if (isLater) setDueBaseline(reduced, row.event.occurredAt, context);
    const { baselineTotal } = reduced.learner();
    if (isLater || index >= lastCommit)
      rewritten.push({ row, conditions, ...answer, learnerSeq, learnerVersion, baselineTotal });
  }
  return { rewritten, states: remaining.length === 0 ? from : reduced.states() };
}

/** Sets the baseline total when due (science notes 6.6). @param at Unix milliseconds */
export function setDueBaseline(
  { learner, skills, setBaseline }: Replay,
  at: number,
  context: BaselineContext,
): void {
  if (!isBaselineDue(learner())) return;
  const { model, registeredSkills } = context;
  const views = buildSkillViews(skills, model, at);
  setBaseline(computeCurrentTotal({ learner: learner(), views, model, registeredSkills, now: at }));
}

function findLastCommitStart(rows: readonly ReplayRow[]): number {
  const version = rows.at(-1)?.figures.learnerVersion ?? 0;
  let first = rows.length - 1;
  while (version > 0 && first > 0 && rows[first - 1]?.figures.learnerVersion === version) first -= 1;
  return Math.max(first, 0);
}

/**
 * If the current model does not reproduce the stored prediction, the row's figures stay. @param oldClose mean
 * mastery that the removed answer stored; the next answer may close that day instead
 */
function recomputeConditions(
  original: Replay,
  reduced: Replay,
  states: AnswerStates,
  row: ReplayRow,
  oldClose: number | null,
  { model, findItem }: RewriteContext,
): AnswerConditions {
  const { event, conditions } = row;
  const item = event.itemId === null ? null : findItem(event.itemId);
  const oldStates = original.before(row);
  const predicted = (from: AnswerStates): number =>
    repeatPrediction(model, event.skillIds, item, from, event, conditions);
  const isCurrentModel = predicted(oldStates) === conditions.pCorrect;
  const close = (): number | null => {
    const now = computeClosedMastery(reduced, states.learner, model);
    const stored = conditions.closedMastery;
    if (stored === null || now === null) return now === null ? null : (oldClose ?? now);
    const then = computeClosedMastery(original, oldStates.learner, model);
    return then !== null && Math.abs(then - stored) < masteryTolerance ? stored + (now - then) : stored;
  };
  return {
    ...conditions,
    pCorrect: isCurrentModel ? predicted(states) : conditions.pCorrect,
    closedMastery: startsNewDay(states.learner, conditions.localDay) ? close() : null,
  };
}

const masteryTolerance = 1e-9;

const computeClosedMastery = (replay: Replay, learner: LearnerState, model: TenantModel): number | null =>
  computeMeanMastery(collectPractisedSkills(replay.skills, model), computeDayEnd(learner));
