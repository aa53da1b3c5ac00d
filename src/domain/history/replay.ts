/** Replays attempt rows to the committed states, byte for byte, with or without one answer. */
import { type Advice, adviseOn } from '../advice/answer-advice.js';
import { type AnswerEffect, applyAnswer } from '../answer/apply-answer.js';
import { type Conditions, predictAgain } from '../answer/conditions.js';
import { type Answer, dayMs } from '../base/common.js';
import type { ItemModel, TenantModel } from '../catalogue/tenant-model.js';
import { meanMastery, practisedSkills, viewSkills } from '../learner/skill-view.js';
import type { ForecastSubject } from '../score/assessment.js';
import { lacksBaseline } from '../score/goal.js';
import { currentTotal } from '../score/scores.js';
import { askedOf } from '../tracing/course.js';
import {
  type AnswerStates,
  closesDay,
  type LearnerState,
  newLearner,
  newSkill,
  type RememberedItem,
  type SkillState,
} from '../tracing/states.js';
import type { ItemTrace } from '../tracing/traces.js';

export interface ReplayRow {
  readonly event: Answer & { readonly skillId: string; readonly itemId: string | null };
  readonly figures: Figures;
  readonly conditions: Conditions;
}

interface Figures {
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
  const items = createItems(from);
  let missing = 0;

  function before({ event, figures, conditions }: ReplayRow): AnswerStates {
    if (figures.learnerVersion !== learner.version) items.commit(learner.items.generation);
    const skill = skills.get(event.skillId) ?? newSkill(conditions.parameters);
    const item = event.itemId === null ? null : items.find(event.itemId);
    return { asked: askedOf(event.skillId, event.itemId), learner, skill, item };
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
const asCommitted = (
  learner: LearnerState,
  { learnerVersion, learnerSeq, baselineTotal }: Figures,
): LearnerState => ({ ...learner, version: learnerVersion, attempts: learnerSeq, baselineTotal });

/** Each item is stored once, in its last generation. */
function createItems(from: ReplayedStates | null) {
  const stored = [new Map(from?.items[0]), new Map(from?.items[1])] as const;
  const open = new Map<string, RememberedItem>();
  let generation = from?.learner.items.generation ?? 0;

  const find = (itemId: string): RememberedItem | undefined =>
    open.get(itemId) ?? storedItem(itemId, generation) ?? storedItem(itemId, generation - 1);

  function storedItem(itemId: string, of: number): RememberedItem | undefined {
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
    keep: (itemId: string, item: RememberedItem) => void open.set(itemId, item),
    commit,
  };
}

type TotalContext = Pick<ForecastSubject, 'model' | 'knownSkills'>;

interface RetractionContext extends TotalContext {
  readonly findItem: (itemId: string) => ItemModel | null;
  readonly version: number;
}

export interface RewrittenRow<Row> extends ReplayedAnswer, Figures {
  readonly row: Row;
  readonly conditions: Conditions;
}

/**
 * Replays a learner without one answer. @param rows without gaps, after the snapshot `from` @param from null
 * if the rows start with the first answer @returns states, and the rows to rewrite: those after the removed
 * one and the last commit
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
    const oldClose = place === removed ? (rows[removed]?.conditions.closedMastery ?? null) : null;
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

/** Sets the baseline total when due (science notes 6.6). @param at Unix milliseconds */
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

/**
 * If the current model does not reproduce the stored prediction, the row's figures stay. @param oldClose mean
 * mastery that the removed answer stored; the next answer may close that day instead
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
    const stored = conditions.closedMastery;
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

const sameMastery = 1e-9;

const closedMastery = (replay: Replay, { activity }: LearnerState, model: TenantModel): number | null =>
  meanMastery(practisedSkills(replay.skills, model), (activity.day + 1) * dayMs);
