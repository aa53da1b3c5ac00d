import { randomInt } from 'node:crypto';
import type { EventOutcome, TrackEvent } from '../../src/contracts/tasks.js';
import { adviseOn } from '../../src/domain/advice/answer-advice.js';
import { type AnswerEffect, applyAnswer } from '../../src/domain/answer/apply-answer.js';
import { type Conditions, conditionsFor } from '../../src/domain/answer/conditions.js';
import { dayMs, dayOf } from '../../src/domain/base/days.js';
import { logit, sigmoid } from '../../src/domain/base/probability.js';
import { type ItemModel, skillModelOf, type TenantModel } from '../../src/domain/catalogue/tenant-model.js';
import {
  meanMastery,
  type PractisedSkill,
  practise,
  practisedSkills,
  viewSkills,
} from '../../src/domain/learner/skill-view.js';
import { lacksBaseline } from '../../src/domain/score/goal.js';
import { currentTotal } from '../../src/domain/score/score.js';
import type { RememberedItem } from '../../src/domain/tracing/item-window.js';
import {
  type AnswerStates,
  closesDay,
  isFirstOfDay,
  type LearnerState,
  newLearner,
  newSkill,
  type SkillState,
} from '../../src/domain/tracing/states.js';
import type { ItemTrace } from '../../src/domain/tracing/traces.js';
import {
  decodeFirstAnswer,
  encodeFirstAnswer,
  type FirstAnswer,
  fingerprintOf,
  hashEventId,
  type LearnerIds,
  openIds,
} from '../../src/store/learners/event-ids.js';
import type {
  LearnerCommit,
  LearnerQuery,
  LoadedLearner,
} from '../../src/store/learners/learner-commands.js';
import { hashItem, type ItemDelta } from '../../src/store/models/item-store.js';
import { partitionOf } from '../../src/store/redis/keys.js';
import { figuresOf, resultOf, rowOf } from './results.js';

/** An event with its place in the task. */
export interface PlacedEvent {
  readonly place: number;
  readonly event: TrackEvent;
}

/** The works of a batch's learners, in the order of their first events. */
export function groupByLearner(events: readonly PlacedEvent[], partitions: number): LearnerWork[] {
  const works = new Map<string, OpenWork>();
  for (const { place, event } of events) {
    const key = `${event.tenant}:${event.userId}`;
    let work = works.get(key);
    if (work === undefined) {
      work = newWork(event, partitions);
      works.set(key, work);
    }
    addEvent(work, place, event);
  }
  return [...works.values()];
}

/** A learner's work while its events are gathered. */
interface OpenWork extends LearnerWork {
  readonly skillIds: string[];
  readonly eventIds: Buffer[];
  readonly itemTexts: string[];
  readonly itemIds: Buffer[];
  readonly events: PlannedEvent[];
}

const newWork = ({ tenant, userId }: TrackEvent, partitions: number): OpenWork => ({
  partition: partitionOf(tenant, userId, partitions),
  tenant,
  userId,
  skillIds: [],
  eventIds: [],
  itemTexts: [],
  itemIds: [],
  events: [],
});

function addEvent(work: OpenWork, place: number, event: TrackEvent): void {
  const { eventId, itemId } = event;
  const id = eventId === null ? null : hashEventId(eventId);
  if (id !== null) work.eventIds.push(id);
  const item = itemId === null ? -1 : placeOf(work.itemTexts, itemId);
  if (itemId !== null && item === work.itemIds.length) work.itemIds.push(hashItem(itemId));
  work.events.push({ place, event, skill: placeOf(work.skillIds, event.skillId), id, item });
}

/** Where the text stands in the list, at its end if it is new. A learner's lists are short. */
function placeOf(texts: string[], text: string): number {
  const place = texts.indexOf(text);
  return place < 0 ? texts.push(text) - 1 : place;
}

/**
 * The answers of one learner in a batch, and what they ask of the store: skills, event ids and items, each once, in
 * the order of their first use.
 */
export interface LearnerWork extends LearnerQuery {
  /** In order of arrival. */
  readonly events: readonly PlannedEvent[];
}

/**
 * An event with its place in the task, and where its skill and its item stand in the work's lists; -1: it has none.
 */
export interface PlannedEvent {
  readonly place: number;
  readonly event: TrackEvent;
  readonly skill: number;
  /** Hash of its event id. */
  readonly id: Buffer | null;
  readonly item: number;
}

/**
 * A new learner. The versions begin anywhere: after an erasure, whoever still holds a state of the history before must
 * never meet its version again, and nothing of that history is left to count on from.
 */
export const beginHistory = (): LearnerState => ({ ...newLearner, version: randomInt(2 ** 31) });

/** What one learner's answers come to: their outcomes, and what to write if anything was counted. */
export interface LearnerPlan {
  /** One per event, in order. */
  readonly outcomes: readonly EventOutcome[];
  readonly commit: LearnerCommit | null;
  /** Skills that this learner answers for the first time. */
  readonly newSkills: readonly string[];
  /** What the answers add to what is known of their items, once they are committed. */
  readonly itemAnswers: readonly ItemDelta[];
}

/** What answers are counted with, beside the learner's own states. */
export interface PlanContext {
  readonly model: TenantModel;
  readonly findItem: (itemId: string) => ItemModel | null;
  /** All the learner's skills; given where `needsAllSkills` asks for them. */
  readonly all: AllSkills | null;
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

/** Applies a learner's answers in order. Pure but for what it is given: nothing is read or written here. */
export function planLearner(work: LearnerWork, loaded: LoadedLearner, context: PlanContext): LearnerPlan {
  const draft = new Draft(work, loaded, context);
  const outcomes = work.events.map((planned) => draft.outcomeOf(planned));
  return {
    outcomes,
    commit: draft.rows.length === 0 ? null : draft.commit(),
    newSkills: work.skillIds.filter((_, i) => loaded.skills[i] === null && draft.skills[i] !== null),
    itemAnswers: draft.itemAnswers,
  };
}

/** The learner's states while the answers of a batch are applied one after another; lists as in the work. */
class Draft {
  readonly skills: (SkillState | null)[];
  readonly rows: string[] = [];
  readonly itemAnswers: ItemDelta[] = [];
  private learner: LearnerState;
  private readonly items: (RememberedItem<ItemTrace> | null)[];
  /** With those of this batch. */
  private readonly ids: LearnerIds;
  private readonly arrivalDays: number[] = [];
  /** Skills that were begun. */
  private begun = 0;
  /** All the learner's skills, once they were asked for: a batch may close a day with each of its answers. */
  private practised: Map<string, PractisedSkill> | null = null;
  private importLine = 0;

  constructor(
    private readonly work: LearnerWork,
    private readonly loaded: LoadedLearner,
    private readonly context: PlanContext,
  ) {
    this.learner = loaded.learner ?? beginHistory();
    this.skills = [...loaded.skills];
    this.items = [...loaded.items];
    this.ids = openIds(loaded.ids);
  }

  outcomeOf(planned: PlannedEvent): EventOutcome {
    const { event, id } = planned;
    if (event.importLine !== null && event.importLine <= this.loaded.importLine)
      return { outcome: 'skipped', data: '' };
    const second = secondOf(event);
    const first = id && this.ids.find(id, second);
    if (first) return repeat(event, decodeFirstAnswer(first));
    if (id && this.ids.isFull(second)) return { outcome: 'unavailable', data: idsExhausted };
    const beyond = this.skills[planned.skill] ? null : this.limitOf(event);
    if (beyond !== null) return { outcome: 'beyond', data: beyond };
    return { outcome: 'counted', data: this.count(planned) };
  }

  /** Why the skill may not be begun, or null. */
  private limitOf({ skillId }: TrackEvent): string | null {
    const { skills, refused } = this.context.room;
    if (this.begun >= skills) return 'The learner has answered as many skills as a learner may have';
    return refused.has(skillId) ? 'The tenant knows as many skills as a tenant may have' : null;
  }

  /** Counts one answer. @returns its result */
  private count(planned: PlannedEvent): string {
    const { event, id } = planned;
    const { model, findItem } = this.context;
    const before = this.statesBefore(planned);
    const item = event.itemId === null ? null : findItem(event.itemId);
    const closed = this.closedMastery(event);
    const conditions = conditionsFor(model, event.skillId, item, before, event, closed);
    const effect = applyAnswer(before, event, conditions);
    const advice = adviseOn(before.skill, effect, event, conditions);
    this.keep(planned, effect);
    this.learner = this.withBaseline(event);
    const fingerprint = id && fingerprintOf(event);
    this.rows.push(rowOf(event, effect, conditions, advice, this.learner, fingerprint));
    this.arrivalDays.push(dayOf(event.receivedAt));
    if (event.itemId !== null && isFirstOfDay(before, event)) {
      this.itemAnswers.push(itemAnswer(event.itemId, event.isCorrect, conditions));
    }
    const figures = figuresOf(effect, advice);
    if (id && fingerprint)
      this.ids.take(id, encodeFirstAnswer(figures, fingerprint, event.receivedAt), secondOf(event));
    return resultOf(figures, event.skillId);
  }

  private statesBefore({ event, skill, item }: PlannedEvent): AnswerStates {
    return {
      learner: this.learner,
      skill: this.skills[skill] ?? newSkill(skillModelOf(this.context.model, event.skillId).parameters),
      item: item < 0 ? null : (this.items[item] ?? undefined),
    };
  }

  /** Mean mastery at the close of the learner's last day, where the answer begins a new one. */
  private closedMastery(event: TrackEvent): number | null {
    if (!closesDay(this.learner, event)) return null;
    const close = (this.learner.activity.day + 1) * dayMs;
    this.practised ??= practisedSkills(this.skillsNow(), this.context.model);
    return meanMastery(this.practised, close);
  }

  /** All the learner's skills, with what the answers before in the batch made of them. */
  private skillsNow(): ReadonlyMap<string, SkillState> {
    const skills = new Map(this.context.all?.skills);
    this.work.skillIds.forEach((skillId, i) => {
      const skill = this.skills[i];
      if (skill) skills.set(skillId, skill);
    });
    return skills;
  }

  private keep({ event, skill, item }: PlannedEvent, effect: AnswerEffect): void {
    if (!this.skills[skill]) this.begun += 1;
    this.skills[skill] = effect.skill;
    if (this.practised) practise(this.practised, event.skillId, effect.skill, this.context.model);
    if (item >= 0 && effect.item) this.items[item] = effect.item;
    this.learner = effect.learner;
    this.importLine = event.importLine ?? 0;
  }

  /** The learner with the baseline, once there are answers enough for one. */
  private withBaseline({ occurredAt }: TrackEvent): LearnerState {
    const { learner } = this;
    if (!lacksBaseline(learner)) return learner;
    const { model, all } = this.context;
    const views = viewSkills(this.skillsNow(), model, occurredAt);
    const knownSkills = all?.knownSkills ?? 0;
    const subject = { learner, views, model, knownSkills, now: occurredAt };
    return { ...learner, baselineTotal: currentTotal(subject) };
  }

  commit(): LearnerCommit {
    const { work, loaded } = this;
    return {
      partition: work.partition,
      tenant: work.tenant,
      userId: work.userId,
      learner: { ...this.learner, version: this.learner.version + 1 },
      skills: changedOf(work.skillIds, loaded.skills, this.skills),
      rows: this.rows,
      arrivalDays: this.arrivalDays,
      ids: this.ids.changes(),
      itemGeneration: loaded.learner?.items.generation ?? 0,
      items: changedOf(work.itemIds, loaded.items, this.items),
      importLine: this.importLine,
    };
  }
}

const idsExhausted = 'The learner has more event ids than can be remembered for ten minutes; try again later';

const secondOf = ({ receivedAt }: TrackEvent): number => Math.floor(receivedAt / 1000);

/** A repeated id gives the first answer again; the same id on a different event is refused. */
function repeat(event: TrackEvent, first: FirstAnswer): EventOutcome {
  if (!first.fingerprint.equals(fingerprintOf(event))) return { outcome: 'reused', data: '' };
  return { outcome: 'replayed', data: resultOf(first, event.skillId) };
}

/** One answer for the item's counters, expected without what is known of the item. */
const itemAnswer = (itemId: string, isCorrect: boolean, conditions: Conditions): ItemDelta => ({
  itemId,
  answers: 1,
  right: isCorrect ? 1 : 0,
  expected: sigmoid(logit(conditions.pCorrect) - conditions.itemDifficulty),
});

/** What the batch made, each with its key. */
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
