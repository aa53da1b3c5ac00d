import type { TrackEvent, TrackOutcome } from '../src/contracts/tasks.js';
import { type AnswerStates, isFirstOfDay } from '../src/domain/answer-states.js';
import { type Conditions, conditionsFor } from '../src/domain/conditions.js';
import { currentTotal } from '../src/domain/forecast.js';
import { dayMs, dayOf } from '../src/domain/forgetting.js';
import { lacksBaseline } from '../src/domain/goal.js';
import type { RememberedItem } from '../src/domain/item-window.js';
import { type AnswerEffect, applyAnswer, closesDay, newLearner, newSkill } from '../src/domain/mastery.js';
import { momentumModel } from '../src/domain/params.js';
import type { ItemTrace } from '../src/domain/prediction/traces.js';
import { logit, sigmoid } from '../src/domain/probability.js';
import { adviseOn } from '../src/domain/recommend.js';
import { meanMastery, type SkillView, viewSkills } from '../src/domain/skill-view.js';
import { type ItemModel, skillModelOf, type TenantModel } from '../src/domain/tenant-model.js';
import type { LearnerState, SkillState } from '../src/domain/types.js';
import {
  decodeFirstAnswer,
  encodeFirstAnswer,
  type FirstAnswer,
  fingerprintOf,
} from '../src/store/event-ids.js';
import { hashItem } from '../src/store/item-id.js';
import type { ItemDelta } from '../src/store/item-store.js';
import type { LearnerCommit, LoadedLearner } from '../src/store/learner-store.js';
import { figuresOf, resultOf, rowOf } from './told.js';

/** The answers of one learner in a batch. */
export interface LearnerWork {
  readonly partition: number;
  readonly tenant: string;
  readonly userId: string;
  /** Events with their places in the task, in order of arrival. */
  readonly events: { readonly place: number; readonly event: TrackEvent; readonly idHash: Buffer | null }[];
}

/** What one learner's answers come to: what to tell, and what to write if anything was counted. */
export interface LearnerPlan {
  /** One per event, in order. */
  readonly told: readonly { readonly outcome: TrackOutcome; readonly data: string }[];
  readonly commit: LearnerCommit | null;
  /** Skills that this learner answers for the first time. */
  readonly newSkills: readonly { readonly tenant: string; readonly skillId: string }[];
  /** What the answers add to what is known of their items, once they are committed. */
  readonly itemAnswers: readonly ItemDelta[];
}

/** What answers are counted with, beside the learner's own states. */
export interface PlanContext {
  readonly model: TenantModel;
  readonly findItem: (itemId: string) => ItemModel | null;
  /** All the learner's skills; given where `needsAllSkills` asks for them. */
  readonly all: AllSkills | null;
  readonly acceptNewIds: boolean;
}

/** What a plan was asked of the store, in the order of what was loaded. */
export interface PlanQuery {
  readonly skillIds: readonly string[];
  readonly items: readonly string[];
}

/** All the learner's skills as stored. */
export interface AllSkills {
  readonly skills: ReadonlyMap<string, SkillState>;
  /** Number of different skills that the tenant set or its learners answered. */
  readonly knownSkills: number;
}

/**
 * Whether these answers may bring the learner to the baseline, or are the first of a day: both look at all the
 * learner's skills, each seldom enough for another read.
 */
export function needsAllSkills(learner: LearnerState | null, { events }: LearnerWork): boolean {
  const { attempts, baselineTotal } = learner ?? newLearner;
  if (lacksBaseline({ baselineTotal, attempts: attempts + events.length })) return true;
  // Not `closesDay`: the batch itself may bring a learner's first day with a count, and then close it.
  return learner !== null && events.some(({ event }) => dayOf(event.occurredAt) > learner.activity.day);
}

/** The learner's states while the answers of a batch are applied one after another. */
interface Draft {
  learner: LearnerState;
  readonly skills: Map<string, SkillState>;
  readonly touched: Map<string, SkillState>;
  readonly items: Map<string, RememberedItem<ItemTrace>>;
  readonly touchedItems: Set<string>;
  readonly answersById: Map<string, FirstAnswer>;
  readonly rows: string[];
  readonly firstAnswers: { id: Buffer; answer: Buffer }[];
  readonly itemAnswers: ItemDelta[];
  importLine: number;
}

/** Applies a learner's answers in order. Pure but for what it is given: nothing is read or written here. */
export function planLearner(
  work: LearnerWork,
  query: PlanQuery,
  loaded: LoadedLearner,
  context: PlanContext,
): LearnerPlan {
  const { skillIds } = query;
  const draft = draftOf(work, query, loaded);
  const told = work.events.map(({ event, idHash }) => {
    if (event.importLine !== null && event.importLine <= loaded.importLine)
      return { outcome: 'skipped', data: '' } as const;
    const first = idHash && draft.answersById.get(idHash.toString('latin1'));
    if (first) return repeat(event, first);
    if (idHash && !context.acceptNewIds) return { outcome: 'unavailable', data: idsExhausted } as const;
    return { outcome: 'counted', data: count(draft, event, idHash, context) } as const;
  });
  const newSkills = [...draft.touched.keys()].filter(
    (skillId) => loaded.skills[skillIds.indexOf(skillId)] === null,
  );
  return {
    told,
    commit: draft.rows.length === 0 ? null : commitOf(work, loaded, draft),
    newSkills: newSkills.map((skillId) => ({ tenant: work.tenant, skillId })),
    itemAnswers: draft.itemAnswers,
  };
}

const idsExhausted = 'Event ids cannot be remembered long enough right now; try again later';

function draftOf(work: LearnerWork, { skillIds, items }: PlanQuery, loaded: LoadedLearner): Draft {
  const asked = work.events.flatMap(({ idHash }) => (idHash === null ? [] : [idHash.toString('latin1')]));
  return {
    learner: loaded.learner ?? newLearner,
    skills: found(skillIds, loaded.skills),
    touched: new Map(),
    items: found(items, loaded.items),
    touchedItems: new Set(),
    answersById: found(
      asked,
      loaded.firstAnswers.map((record) => record && decodeFirstAnswer(record)),
    ),
    rows: [],
    firstAnswers: [],
    itemAnswers: [],
    importLine: 0,
  };
}

/** What was found, by the keys that were asked for. */
function found<Value>(keys: readonly string[], values: readonly (Value | null)[]): Map<string, Value> {
  const map = new Map<string, Value>();
  keys.forEach((key, i) => {
    const value = values[i];
    if (value !== null && value !== undefined) map.set(key, value);
  });
  return map;
}

/** A repeated id gives the first answer again; the same id on a different event is refused. */
function repeat(event: TrackEvent, first: FirstAnswer): { outcome: TrackOutcome; data: string } {
  if (!first.fingerprint.equals(fingerprintOf(event))) return { outcome: 'reused', data: '' };
  return { outcome: 'replayed', data: resultOf(first, event.skillId) };
}

/** Counts one answer; returns what to tell. */
function count(draft: Draft, event: TrackEvent, idHash: Buffer | null, context: PlanContext): string {
  const before = statesOf(draft, event, context.model);
  const item = event.itemId === null ? null : context.findItem(event.itemId);
  const closed = closedMastery(draft, event, context);
  const conditions = conditionsFor(context.model, event.skillId, item, before, event, closed);
  const effect = applyAnswer(before, event, conditions);
  const advice = adviseOn(before.skill, effect, event, conditions);
  keep(draft, event, effect);
  draft.learner = withBaseline(draft, event, context);
  draft.rows.push(rowOf(event, effect, conditions, advice, draft.learner.baselineTotal));
  if (event.itemId !== null && isFirstOfDay(before, event)) {
    draft.itemAnswers.push(itemAnswer(event.itemId, event.isCorrect, conditions));
  }
  const told = figuresOf(effect, advice);
  if (idHash !== null) remember(draft, event, idHash, { ...told, fingerprint: fingerprintOf(event) });
  return resultOf(told, event.skillId);
}

/** One answer for the item's counters, expected without what is known of the item. */
const itemAnswer = (itemId: string, isCorrect: boolean, conditions: Conditions): ItemDelta => ({
  itemId,
  answers: 1,
  right: isCorrect ? 1 : 0,
  expected: sigmoid(logit(conditions.pCorrect) - conditions.itemDifficulty),
});

function statesOf({ learner, skills, items }: Draft, event: TrackEvent, model: TenantModel): AnswerStates {
  const skill = skills.get(event.skillId) ?? newSkill(skillModelOf(model, event.skillId).parameters);
  return { learner, skill, item: event.itemId === null ? null : items.get(event.itemId) };
}

/** Mean mastery at the close of the learner's last day, where the answer begins a new one. */
function closedMastery(draft: Draft, event: TrackEvent, context: PlanContext): number | null {
  if (!closesDay(draft.learner, event)) return null;
  const close = (draft.learner.activity.day + 1) * dayMs;
  return meanMastery(viewsAt(draft, close, context), momentumModel.minAttempts);
}

/** All the learner's skills at a time, with what the answers before in the batch made of them. */
const viewsAt = (draft: Draft, at: number, { all, model }: PlanContext): SkillView[] =>
  viewSkills(new Map([...(all?.skills ?? []), ...draft.touched]), model, at);

function keep(draft: Draft, event: TrackEvent, effect: AnswerEffect): void {
  draft.skills.set(event.skillId, effect.skill);
  draft.touched.set(event.skillId, effect.skill);
  if (event.itemId !== null && effect.item) {
    draft.items.set(event.itemId, effect.item);
    draft.touchedItems.add(event.itemId);
  }
  draft.learner = effect.learner;
  draft.importLine = event.importLine ?? 0;
}

function remember(draft: Draft, event: TrackEvent, idHash: Buffer, first: FirstAnswer): void {
  draft.answersById.set(idHash.toString('latin1'), first);
  draft.firstAnswers.push({ id: idHash, answer: encodeFirstAnswer(first, event.receivedAt) });
}

/** The learner with the baseline, once there are answers enough for one. */
function withBaseline(draft: Draft, { occurredAt }: TrackEvent, context: PlanContext): LearnerState {
  const { learner } = draft;
  if (!lacksBaseline(learner)) return learner;
  const views = viewsAt(draft, occurredAt, context);
  const knownSkills = Math.max(context.all?.knownSkills ?? 0, views.length);
  const { catalogue } = context.model;
  return {
    ...learner,
    baselineTotal: currentTotal({ learner, views, catalogue, knownSkills, now: occurredAt }),
  };
}

function commitOf(
  { partition, tenant, userId }: LearnerWork,
  loaded: LoadedLearner,
  draft: Draft,
): LearnerCommit {
  const expectedVersion = loaded.learner?.version ?? 0;
  return {
    partition,
    tenant,
    userId,
    expectedVersion,
    learner: { ...draft.learner, version: expectedVersion + 1 },
    skills: draft.touched,
    rows: draft.rows,
    firstAnswers: draft.firstAnswers,
    itemGeneration: loaded.learner?.items.generation ?? 0,
    items: [...draft.touchedItems].flatMap((itemId) => {
      const item = draft.items.get(itemId);
      return item === undefined ? [] : [{ id: hashItem(itemId), item }];
    }),
    importLine: draft.importLine,
  };
}
