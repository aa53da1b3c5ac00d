import type { TrackEvent, TrackOutcome } from '../src/contracts/tasks.js';
import { type AnswerStates, isFirstOfDay } from '../src/domain/answer-states.js';
import { type Conditions, conditionsFor } from '../src/domain/conditions.js';
import { dayMs, dayOf } from '../src/domain/forgetting.js';
import { lacksBaseline } from '../src/domain/goal.js';
import type { RememberedItem } from '../src/domain/item-window.js';
import { type AnswerEffect, applyAnswer, closesDay, newLearner, newSkill } from '../src/domain/mastery.js';
import type { ItemTrace } from '../src/domain/prediction/traces.js';
import { logit, sigmoid } from '../src/domain/probability.js';
import { adviseOn } from '../src/domain/recommend.js';
import {
  meanMastery,
  type PractisedSkill,
  practise,
  practisedSkills,
  type SkillView,
  viewSkills,
} from '../src/domain/skill-view.js';
import { currentTotal } from '../src/domain/standing.js';
import { type ItemModel, skillModelOf, type TenantModel } from '../src/domain/tenant-model.js';
import type { LearnerState, SkillState } from '../src/domain/types.js';
import {
  decodeFirstAnswer,
  encodeFirstAnswer,
  type FirstAnswer,
  fingerprintOf,
} from '../src/store/event-ids.js';
import type { ItemDelta } from '../src/store/item-store.js';
import {
  beginHistory,
  type LearnerCommit,
  type LearnerQuery,
  type LoadedLearner,
} from '../src/store/learner-records.js';
import { figuresOf, resultOf, rowOf } from './told.js';

/**
 * The answers of one learner in a batch, and what they ask of the store: skills, event ids and items, each once, in
 * the order of their first use.
 */
export interface LearnerWork extends LearnerQuery {
  /** In order of arrival. */
  readonly events: readonly PlannedEvent[];
}

/** An event with its place in the task, and where what it needs stands in the work's lists; -1: it needs none. */
export interface PlannedEvent {
  readonly place: number;
  readonly event: TrackEvent;
  readonly skill: number;
  readonly id: number;
  readonly item: number;
}

/** What one learner's answers come to: what to tell, and what to write if anything was counted. */
export interface LearnerPlan {
  /** One per event, in order. */
  readonly told: readonly Told[];
  readonly commit: LearnerCommit | null;
  /** Skills that this learner answers for the first time. */
  readonly newSkills: readonly string[];
  /** What the answers add to what is known of their items, once they are committed. */
  readonly itemAnswers: readonly ItemDelta[];
  /** An answer was refused whose id was not looked up: it may have been counted before. */
  readonly needsIds: boolean;
}

/** What became of one event. */
export interface Told {
  readonly outcome: TrackOutcome;
  readonly data: string;
}

/** What answers are counted with, beside the learner's own states. */
export interface PlanContext {
  readonly model: TenantModel;
  readonly findItem: (itemId: string) => ItemModel | null;
  /** All the learner's skills; given where `needsAllSkills` asks for them. */
  readonly all: AllSkills | null;
  readonly acceptNewIds: boolean;
  readonly room: SkillRoom;
}

/** Which skills a learner may begin. */
export interface SkillRoom {
  /** How many. */
  readonly skills: number;
  /** Skills that the tenant does not know and has no room for. */
  readonly refused: ReadonlySet<string>;
}

/** All the learner's skills as stored. */
export interface AllSkills {
  readonly skills: ReadonlyMap<string, SkillState>;
  /** Number of different skills that the tenant set, or that learners enough answered. */
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

/** The learner's states while the answers of a batch are applied one after another; lists as in the work. */
interface Draft {
  learner: LearnerState;
  readonly skills: (SkillState | null)[];
  readonly items: (RememberedItem<ItemTrace> | null)[];
  /** As they are stored; those of this batch are added. */
  readonly firstAnswers: (Buffer | null)[];
  readonly rows: string[];
  readonly arrivalDays: number[];
  readonly itemAnswers: ItemDelta[];
  /** Skills that were begun. */
  begun: number;
  /** All the learner's skills, once they were asked for: a batch may close a day with each of its answers. */
  practised: Map<string, PractisedSkill> | null;
  importLine: number;
}

/** Applies a learner's answers in order. Pure but for what it is given: nothing is read or written here. */
export function planLearner(work: LearnerWork, loaded: LoadedLearner, context: PlanContext): LearnerPlan {
  const draft = draftOf(loaded);
  const told = work.events.map((planned) => tellOne(draft, work, planned, loaded, context));
  const idsUnknown = loaded.firstAnswers.length === 0;
  return {
    told,
    commit: draft.rows.length === 0 ? null : commitOf(work, loaded, draft),
    newSkills: work.skillIds.filter((_, i) => loaded.skills[i] === null && draft.skills[i] !== null),
    itemAnswers: draft.itemAnswers,
    needsIds: idsUnknown && work.events.some(({ id }, i) => id >= 0 && told[i]?.outcome === 'beyond'),
  };
}

function tellOne(
  draft: Draft,
  work: LearnerWork,
  planned: PlannedEvent,
  loaded: LoadedLearner,
  context: PlanContext,
): Told {
  const { event, id } = planned;
  if (event.importLine !== null && event.importLine <= loaded.importLine)
    return { outcome: 'skipped', data: '' };
  const first = draft.firstAnswers[id];
  if (first) return repeat(event, decodeFirstAnswer(first));
  if (id >= 0 && !context.acceptNewIds) return { outcome: 'unavailable', data: idsExhausted };
  const beyond = draft.skills[planned.skill] ? null : limitOf(draft, event, context.room);
  if (beyond !== null) return { outcome: 'beyond', data: beyond };
  return { outcome: 'counted', data: count(draft, work, planned, context) };
}

/** Why the skill may not be begun, or null. */
function limitOf({ begun }: Draft, { skillId }: TrackEvent, { skills, refused }: SkillRoom): string | null {
  if (begun >= skills) return 'The learner has answered as many skills as a learner may have';
  return refused.has(skillId) ? 'The tenant knows as many skills as a tenant may have' : null;
}

const idsExhausted = 'Event ids cannot be remembered long enough right now; try again later';

const draftOf = (loaded: LoadedLearner): Draft => ({
  learner: loaded.learner ?? beginHistory(),
  skills: [...loaded.skills],
  items: [...loaded.items],
  firstAnswers: [...loaded.firstAnswers],
  rows: [],
  arrivalDays: [],
  itemAnswers: [],
  begun: 0,
  practised: null,
  importLine: 0,
});

/** A repeated id gives the first answer again; the same id on a different event is refused. */
function repeat(event: TrackEvent, first: FirstAnswer): Told {
  if (!first.fingerprint.equals(fingerprintOf(event))) return { outcome: 'reused', data: '' };
  return { outcome: 'replayed', data: resultOf(first, event.skillId) };
}

/** Counts one answer; returns what to tell. */
function count(draft: Draft, work: LearnerWork, planned: PlannedEvent, context: PlanContext): string {
  const { event } = planned;
  const before = statesOf(draft, planned, context.model);
  const item = event.itemId === null ? null : context.findItem(event.itemId);
  const closed = closedMastery(draft, work, event, context);
  const conditions = conditionsFor(context.model, event.skillId, item, before, event, closed);
  const effect = applyAnswer(before, event, conditions);
  const advice = adviseOn(before.skill, effect, event, conditions);
  keep(draft, planned, effect, context);
  draft.learner = withBaseline(draft, work, event, context);
  const fingerprint = planned.id < 0 ? null : fingerprintOf(event);
  draft.rows.push(rowOf(event, effect, conditions, advice, draft.learner, fingerprint));
  draft.arrivalDays.push(dayOf(event.receivedAt));
  if (event.itemId !== null && isFirstOfDay(before, event)) {
    draft.itemAnswers.push(itemAnswer(event.itemId, event.isCorrect, conditions));
  }
  const told = figuresOf(effect, advice);
  if (fingerprint !== null) {
    draft.firstAnswers[planned.id] = encodeFirstAnswer(told, fingerprint, event.receivedAt);
  }
  return resultOf(told, event.skillId);
}

/** One answer for the item's counters, expected without what is known of the item. */
const itemAnswer = (itemId: string, isCorrect: boolean, conditions: Conditions): ItemDelta => ({
  itemId,
  answers: 1,
  right: isCorrect ? 1 : 0,
  expected: sigmoid(logit(conditions.pCorrect) - conditions.itemDifficulty),
});

function statesOf(
  { learner, skills, items }: Draft,
  { event, skill, item }: PlannedEvent,
  model: TenantModel,
): AnswerStates {
  return {
    learner,
    skill: skills[skill] ?? newSkill(skillModelOf(model, event.skillId).parameters),
    item: item < 0 ? null : (items[item] ?? undefined),
  };
}

/** Mean mastery at the close of the learner's last day, where the answer begins a new one. */
function closedMastery(
  draft: Draft,
  work: LearnerWork,
  event: TrackEvent,
  context: PlanContext,
): number | null {
  if (!closesDay(draft.learner, event)) return null;
  const close = (draft.learner.activity.day + 1) * dayMs;
  draft.practised ??= practisedSkills(skillsNow(draft, work, context), context.model);
  return meanMastery(draft.practised, close);
}

/** All the learner's skills at a time, with what the answers before in the batch made of them. */
const viewsAt = (draft: Draft, work: LearnerWork, at: number, context: PlanContext): SkillView[] =>
  viewSkills(skillsNow(draft, work, context), context.model, at);

function skillsNow(
  draft: Draft,
  { skillIds }: LearnerWork,
  { all }: PlanContext,
): ReadonlyMap<string, SkillState> {
  const skills = new Map(all?.skills);
  skillIds.forEach((skillId, i) => {
    const skill = draft.skills[i];
    if (skill) skills.set(skillId, skill);
  });
  return skills;
}

function keep(
  draft: Draft,
  { event, skill, item }: PlannedEvent,
  effect: AnswerEffect,
  { model }: PlanContext,
): void {
  if (!draft.skills[skill]) draft.begun += 1;
  draft.skills[skill] = effect.skill;
  if (draft.practised) practise(draft.practised, event.skillId, effect.skill, model);
  if (item >= 0 && effect.item) draft.items[item] = effect.item;
  draft.learner = effect.learner;
  draft.importLine = event.importLine ?? 0;
}

/** The learner with the baseline, once there are answers enough for one. */
function withBaseline(
  draft: Draft,
  work: LearnerWork,
  { occurredAt }: TrackEvent,
  context: PlanContext,
): LearnerState {
  const { learner } = draft;
  if (!lacksBaseline(learner)) return learner;
  const views = viewsAt(draft, work, occurredAt, context);
  const knownSkills = context.all?.knownSkills ?? 0;
  const { catalogue } = context.model;
  return {
    ...learner,
    baselineTotal: currentTotal({ learner, views, catalogue, knownSkills, now: occurredAt }),
  };
}

function commitOf(work: LearnerWork, loaded: LoadedLearner, draft: Draft): LearnerCommit {
  return {
    partition: work.partition,
    tenant: work.tenant,
    userId: work.userId,
    expectedVersion: loaded.learner?.version ?? 0,
    learner: { ...draft.learner, version: draft.learner.version + 1 },
    skills: changedOf(work.skillIds, loaded.skills, draft.skills),
    rows: draft.rows,
    arrivalDays: draft.arrivalDays,
    firstAnswers: changedOf(work.eventIds, loaded.firstAnswers, draft.firstAnswers),
    itemGeneration: loaded.learner?.items.generation ?? 0,
    items: changedOf(work.itemIds, loaded.items, draft.items),
    importLine: draft.importLine,
  };
}

/** What the batch made anew, each with its key. */
function changedOf<Key, Value>(
  keys: readonly Key[],
  before: readonly (Value | null)[],
  after: readonly (Value | null)[],
): (readonly [Key, Value])[] {
  const changed: [Key, Value][] = [];
  for (let i = 0; i < keys.length; i++) {
    const value = after[i] ?? null;
    if (value !== null && value !== before[i]) changed.push([keys[i] as Key, value]);
  }
  return changed;
}
