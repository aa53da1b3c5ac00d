import { randomInt } from 'node:crypto';
import { encodeAttemptRow } from '../../src/contracts/attempt-row.js';
import type { WebhookEvent } from '../../src/contracts/webhook-events.js';
import type { EventOutcome, TrackEvent } from '../../src/contracts/worker-tasks.js';
import { selectAnswerAdvice } from '../../src/domain/advice/answer-advice.js';
import { type AnswerConditions, computeConditions } from '../../src/domain/answer/answer-conditions.js';
import { applyAnswer } from '../../src/domain/answer/apply-answer.js';
import { dayMs, logit, sigmoid, toDay } from '../../src/domain/base/common.js';
import {
  type ItemModel,
  resolveSkillModel,
  type TenantModel,
} from '../../src/domain/catalogue/tenant-model.js';
import {
  addPractisedSkill,
  buildSkillViews,
  collectPractisedSkills,
  computeMeanMastery,
  type PractisedSkill,
} from '../../src/domain/learner/skill-view.js';
import { isBaselineDue } from '../../src/domain/score/goal.js';
import { computeCurrentTotal } from '../../src/domain/score/scores.js';
import { hashQuestionKeys } from '../../src/domain/tracing/course.js';
import {
  type AnswerStates,
  isFirstOfDay,
  type LearnerState,
  newLearner,
  newSkill,
  type SkillState,
  startsNewDay,
} from '../../src/domain/tracing/learner-states.js';
import {
  decodeFirstAnswer,
  encodeFirstAnswer,
  fingerprintNumber,
  fingerprintOf,
  openIds,
} from '../../src/store/learners/event-ids.js';
import type { LearnerCommit, LoadedLearner } from '../../src/store/learners/learner-commands.js';
import type { ItemDelta } from '../../src/store/models/item-store.js';
import type { NewSkill, SkillRoom } from './known-skills.js';
import { eventsOf, goalCheckOf } from './notices.js';
import type { LearnerWork, PlannedEvent } from './read-events.js';
import { figuresOf, resultOf, rowFigures } from './results.js';

export interface AllSkills {
  readonly skills: ReadonlyMap<string, SkillState>;
  /** Skills that are configured or that enough learners answered. */
  readonly knownSkills: number;
}

export interface PlanContext {
  readonly model: TenantModel;
  /** For `isWanted`; '' sends no events, as in an import. */
  readonly wanted: string;
  readonly findItem: (itemId: string) => ItemModel | null;
  /** Set if `needsAllSkills` is true. */
  readonly all: AllSkills | undefined;
  /** Undefined: enough room. */
  readonly room: SkillRoom | undefined;
}

/** Whether these answers may set the baseline or start a day: both need all skills. */
export function needsAllSkills(learner: LearnerState | null, { events }: LearnerWork): boolean {
  const { attempts, baselineTotal } = learner ?? newLearner;
  if (isBaselineDue({ baselineTotal, attempts: attempts + events.length })) return true;
  // Not `startsNewDay`: a batch may start the learner's first counted day and close it.
  return learner !== null && events.some(({ event }) => toDay(event.occurredAt) > learner.activity.day);
}

/** A random version never matches a state from before an erasure. */
export const beginHistory = (): LearnerState => ({ ...newLearner, version: randomInt(2 ** 31) });

export type LearnerPlan = ReturnType<typeof planLearner>;

/** Applies a learner's events in order, without I/O. */
export function planLearner(work: LearnerWork, loaded: LoadedLearner, context: PlanContext) {
  const draft = new Draft(work, loaded, context);
  return {
    work,
    modelVersion: context.model.version,
    outcomes: work.events.map((planned) => draft.outcomeOf(planned)),
    /** Null if no event was counted. */
    commit: draft.rows.length === 0 ? null : draft.commit(),
    newSkills: draft.newSkills,
    itemAnswers: draft.itemAnswers,
  };
}

/** Lists have the order of the lists in `learnerEvents`. */
class Draft {
  readonly rows: string[] = [];
  readonly newSkills: NewSkill[] = [];
  readonly itemAnswers: ItemDelta[] = [];
  private readonly events: WebhookEvent[] = [];
  private readonly skills: (SkillState | null)[];
  private readonly items: LoadedLearner['items'][number][];
  private readonly ids;
  private readonly arrivalDays: number[] = [];
  private learner: LearnerState;
  private importLine = 0;
  /** Computed once: each answer of a batch may close a day. */
  private practised: Map<string, PractisedSkill> | null = null;

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
    if (first) return repeat(event, first);
    if (id && this.ids.isFull(second)) return { outcome: 'unavailable', data: idsExhausted };
    const beyond = this.skills[planned.skill] ? null : this.limitOf(event);
    if (beyond !== null) return { outcome: 'beyond', data: beyond };
    return { outcome: 'counted', data: this.count(planned) };
  }

  private limitOf({ skillId }: TrackEvent): string | null {
    const { room } = this.context;
    if (room === undefined) return null;
    if (this.newSkills.length >= room.skills)
      return 'The learner has answered as many skills as a learner may have';
    return room.refused.has(skillId) ? 'The tenant knows as many skills as a tenant may have' : null;
  }

  private count({ event, skill, id, item }: PlannedEvent): string {
    const { model, findItem, wanted } = this.context;
    const { tenant, userId, itemId, skillId } = event;
    const before: AnswerStates = {
      keys: hashQuestionKeys(event.skillId, event.itemId),
      learner: this.learner,
      skill: this.skills[skill] ?? newSkill(resolveSkillModel(model, skillId).parameters),
      item: item < 0 ? null : (this.items[item] ?? undefined),
    };
    const closed = this.closedMastery(event);
    const itemModel = itemId === null ? null : findItem(itemId);
    const conditions = computeConditions(model, skillId, itemModel, before, event, closed);
    const effect = applyAnswer(before, event, conditions);
    const advice = selectAnswerAdvice(before.skill, effect, event, conditions);
    if (!this.skills[skill]) this.newSkills.push({ tenant, userId, skillId });
    this.skills[skill] = effect.skill;
    if (wanted !== '') this.events.push(...eventsOf(event, before.skill, effect.skill, wanted));
    if (this.practised) addPractisedSkill(this.practised, skillId, effect.skill, model);
    if (item >= 0 && effect.item) this.items[item] = effect.item;
    this.learner = this.withBaseline(effect.learner, event);
    this.importLine = event.importLine ?? 0;
    const fingerprint = id && fingerprintOf(event);
    const place = {
      learnerSeq: this.learner.attempts,
      baselineTotal: this.learner.baselineTotal,
      eventFingerprint: fingerprint === null ? 0 : fingerprintNumber(fingerprint),
      learnerVersion: this.learner.version + 1,
    };
    this.rows.push(encodeAttemptRow(event, rowFigures(effect, conditions, advice, place), conditions));
    this.arrivalDays.push(toDay(event.receivedAt));
    if (itemId !== null && isFirstOfDay(before, event))
      this.itemAnswers.push(itemAnswer(itemId, event.isCorrect, conditions));
    const figures = figuresOf(effect, advice);
    if (id && fingerprint)
      this.ids.take(id, encodeFirstAnswer(figures, fingerprint, event.receivedAt), secondOf(event));
    return resultOf(figures, skillId);
  }

  /** For the learner's last day; null if the answer starts no new day. */
  private closedMastery(event: TrackEvent): number | null {
    if (!startsNewDay(this.learner, event)) return null;
    const close = (this.learner.activity.day + 1) * dayMs;
    this.practised ??= collectPractisedSkills(this.skillsNow(), this.context.model);
    return computeMeanMastery(this.practised, close);
  }

  private skillsNow(): ReadonlyMap<string, SkillState> {
    const skills = new Map(this.context.all?.skills);
    for (const [skillId, skill] of changedOf(this.work.skillIds, [], this.skills)) skills.set(skillId, skill);
    return skills;
  }

  private withBaseline(learner: LearnerState, { occurredAt }: TrackEvent): LearnerState {
    if (!isBaselineDue(learner)) return learner;
    const { model, all } = this.context;
    const views = buildSkillViews(this.skillsNow(), model, occurredAt);
    const subject = { learner, views, model, registeredSkills: all?.knownSkills ?? 0, now: occurredAt };
    return { ...learner, baselineTotal: computeCurrentTotal(subject) };
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
      events: this.events,
      goalCheckAt: goalCheckOf(work, loaded.hasGoal, this.context.wanted),
    };
  }
}

const idsExhausted = 'The learner has more event ids than can be remembered for ten minutes; try again later';

const secondOf = ({ receivedAt }: TrackEvent): number => Math.floor(receivedAt / 1000);

/** The first result, or `reused` if the id belongs to a different event. */
function repeat(event: TrackEvent, record: Buffer): EventOutcome {
  const first = decodeFirstAnswer(record);
  if (!first.fingerprint.equals(fingerprintOf(event))) return { outcome: 'reused', data: '' };
  return { outcome: 'replayed', data: resultOf(first, event.skillId) };
}

/** `expected`: probability of a right answer without the item's difficulty. */
const itemAnswer = (itemId: string, isCorrect: boolean, conditions: AnswerConditions): ItemDelta => ({
  itemId,
  answers: 1,
  right: isCorrect ? 1 : 0,
  expected: sigmoid(logit(conditions.pCorrect) - conditions.itemDifficulty),
});

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
