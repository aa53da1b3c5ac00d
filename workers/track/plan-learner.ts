import { randomInt } from 'node:crypto';
import { encodeAttemptRow } from '../../src/contracts/answers/attempt-row.js';
import type { EventOutcome, TrackEvent } from '../../src/contracts/answers/track-task.js';
import type { WebhookEvent } from '../../src/contracts/webhooks/webhook-events.js';
import { selectAnswerAdvice } from '../../src/domain/advice/answer-advice.js';
import { type AnswerConditions, computeConditions } from '../../src/domain/answer/answer-conditions.js';
import { type AnswerEffect, applyAnswer } from '../../src/domain/answer/apply-answer.js';
import { getCalendar } from '../../src/domain/base/calendar.js';
import { logit, mapNonEmpty, sigmoid, toUtcDay } from '../../src/domain/base/common.js';
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
  computeDayEnd,
  isFirstOfDay,
  type LearnerState,
  newLearner,
  newSkill,
  type SkillState,
  startsNewDay,
} from '../../src/domain/tracing/learner-states.js';
import {
  computeFingerprint,
  decodeFirstResult,
  encodeFirstResult,
  fingerprintToNumber,
  openIds,
} from '../../src/store/learners/event-ids.js';
import type { LearnerCommit, LoadedLearner } from '../../src/store/learners/learner-commands.js';
import type { ItemDelta } from '../../src/store/models/item-store.js';
import { buildSkillEvents, computeCheckTime } from './notifications.js';
import type { GroupedEvent, LearnerEvents } from './read-events.js';
import { formatResult, toAttemptFigures, toResultFigures } from './results.js';
import type { NewSkill, SkillAllowance } from './skill-registry.js';

export interface LearnerSkills {
  readonly skills: ReadonlyMap<string, SkillState>;
  /** Skills that are configured or that enough learners answered. */
  readonly registeredSkills: number;
}

export interface PlanContext {
  readonly model: TenantModel;
  /** For `isSubscribed`. '' in an import, which sends no webhook events. */
  readonly subscribedTypes: string;
  readonly findItem: (itemId: string) => ItemModel | null;
  /** Set if `needsAllSkills` is true. */
  readonly learnerSkills: LearnerSkills | undefined;
  /** Undefined: enough room. */
  readonly skillAllowance: SkillAllowance | undefined;
}

/** Whether these answers may set the baseline or start a day: both need all skills. */
export function needsAllSkills(learner: LearnerState | null, { events }: LearnerEvents): boolean {
  const { attempts, baselineTotal } = learner ?? newLearner;
  if (isBaselineDue({ baselineTotal, attempts: attempts + events.length })) return true;
  // Not `startsNewDay`: a batch may start the learner's first counted day and close it.
  if (learner === null) return false;
  const { toDay } = getCalendar(learner.timeZone);
  return events.some(({ event }) => toDay(event.occurredAt) > learner.activity.day);
}

/** A random version never matches a state from before an erasure. */
export const createLearnerState = (timeZone: string): LearnerState => ({
  ...newLearner,
  version: randomInt(2 ** 31),
  timeZone,
});

export type LearnerPlan = ReturnType<typeof planLearner>;

/** Applies a learner's events in order, without I/O. */
export function planLearner(learnerEvents: LearnerEvents, loaded: LoadedLearner, context: PlanContext) {
  const draft = new LearnerDraft(learnerEvents, loaded, context);
  return {
    learnerEvents,
    tenantModelVersion: context.model.version,
    outcomes: learnerEvents.events.map((planned) => draft.applyEvent(planned)),
    /** Null if no event was counted. */
    commit: draft.rows.length === 0 ? null : draft.buildCommit(),
    newSkills: draft.newSkills,
    itemDeltas: draft.itemDeltas,
  };
}

/** `skills` and `items` have the order of the lists in `learnerEvents`. */
class LearnerDraft {
  readonly rows: string[] = [];
  readonly newSkills: NewSkill[] = [];
  readonly itemDeltas: ItemDelta[] = [];
  private readonly webhookEvents: WebhookEvent[] = [];
  private readonly skills: (SkillState | null)[];
  private readonly items: LoadedLearner['items'][number][];
  private readonly ids;
  private readonly arrivalDays: number[] = [];
  private learner: LearnerState;
  private importLine = 0;
  /** Computed once: each answer of a batch may close a day. */
  private practised: Map<string, PractisedSkill> | null = null;

  constructor(
    private readonly learnerEvents: LearnerEvents,
    private readonly loaded: LoadedLearner,
    private readonly context: PlanContext,
  ) {
    this.learner = loaded.learner ?? createLearnerState(context.model.catalogue.timeZone);
    this.skills = [...loaded.skills];
    this.items = [...loaded.items];
    this.ids = openIds(loaded.ids);
  }

  applyEvent(planned: GroupedEvent): EventOutcome {
    const { event, idHash } = planned;
    if (event.importLine !== null && event.importLine <= this.loaded.importLine)
      return { outcome: 'skipped', data: '' };
    const arrivalSecond = toArrivalSecond(event);
    const firstResult = idHash && this.ids.find(idHash, arrivalSecond);
    if (firstResult) return buildRepeatOutcome(event, firstResult);
    if (idHash && this.ids.isFull(arrivalSecond))
      return { outcome: 'unavailable', data: idsExhaustedMessage };
    const limitMessage = this.checkSkillLimit(planned);
    if (limitMessage !== null) return { outcome: 'beyond', data: limitMessage };
    return { outcome: 'counted', data: this.countAnswer(planned) };
  }

  private checkSkillLimit({ event, skillIndexes }: GroupedEvent): string | null {
    const { skillAllowance } = this.context;
    if (skillAllowance === undefined) return null;
    const newSkillIds = event.skillIds.filter((_, i) => !this.skills[skillIndexes[i] as number]);
    if (newSkillIds.length === 0) return null;
    if (this.newSkills.length + newSkillIds.length > skillAllowance.maxNewSkills) return learnerLimitMessage;
    return newSkillIds.some((one) => skillAllowance.rejectedSkills.has(one)) ? tenantLimitMessage : null;
  }

  private countAnswer({ event, skillIndexes, idHash, itemIndex }: GroupedEvent): string {
    const { model, findItem } = this.context;
    const { itemId, skillIds } = event;
    const before: AnswerStates = {
      keys: hashQuestionKeys(skillIds, itemId),
      learner: this.learner,
      skills: mapNonEmpty(
        skillIds,
        (skillId, i) =>
          this.skills[skillIndexes[i] as number] ?? newSkill(resolveSkillModel(model, skillId).parameters),
      ),
      item: itemIndex < 0 ? null : (this.items[itemIndex] ?? undefined),
    };
    const closingMastery = this.computeClosingMastery(event);
    const itemModel = itemId === null ? null : findItem(itemId);
    const conditions = computeConditions(model, skillIds, itemModel, before, event, closingMastery);
    const effect = applyAnswer(before, event, conditions);
    const advice = selectAnswerAdvice(before, effect, event, conditions);
    for (let i = 0; i < skillIndexes.length; i++)
      this.setSkill(event, i, skillIndexes[i] as number, before, effect);
    if (itemIndex >= 0 && effect.item) this.items[itemIndex] = effect.item;
    this.learner = this.withBaseline(effect.learner, event);
    this.importLine = event.importLine ?? 0;
    const fingerprint = idHash && computeFingerprint(event);
    const learnerFigures = {
      learnerSeq: this.learner.attempts,
      baselineTotal: this.learner.baselineTotal,
      eventFingerprint: fingerprint === null ? 0 : fingerprintToNumber(fingerprint),
      learnerVersion: this.learner.version + 1,
    };
    this.rows.push(
      encodeAttemptRow(event, toAttemptFigures(effect, conditions, advice, learnerFigures), conditions),
    );
    this.arrivalDays.push(toUtcDay(event.receivedAt));
    if (itemId !== null && isFirstOfDay(before, conditions.localDay))
      this.itemDeltas.push(buildItemDelta(itemId, event.isCorrect, conditions));
    const figures = toResultFigures(skillIds, effect, advice);
    if (idHash && fingerprint)
      this.ids.add(idHash, encodeFirstResult(figures, fingerprint, event.receivedAt), toArrivalSecond(event));
    return formatResult(figures, event.listsSkills);
  }

  private setSkill(
    event: TrackEvent,
    i: number,
    index: number,
    before: AnswerStates,
    after: AnswerEffect,
  ): void {
    const { model, subscribedTypes } = this.context;
    const { tenant, userId } = event;
    const skillId = event.skillIds[i] as string;
    const [was, is] = [before.skills[i] as SkillState, after.skills[i] as SkillState];
    if (!this.skills[index]) this.newSkills.push({ tenant, userId, skillId });
    this.skills[index] = is;
    if (subscribedTypes !== '')
      this.webhookEvents.push(...buildSkillEvents(event, skillId, was, is, subscribedTypes));
    if (this.practised) addPractisedSkill(this.practised, skillId, is, model);
  }

  /** For the learner's last day; null if the answer starts no new day. */
  private computeClosingMastery(event: TrackEvent): number | null {
    const localDay = getCalendar(this.learner.timeZone).toDay(event.occurredAt);
    if (!startsNewDay(this.learner, localDay)) return null;
    this.practised ??= collectPractisedSkills(this.collectSkills(), this.context.model);
    return computeMeanMastery(this.practised, computeDayEnd(this.learner));
  }

  private collectSkills(): ReadonlyMap<string, SkillState> {
    const skills = new Map(this.context.learnerSkills?.skills);
    for (const [skillId, skill] of selectChanged(this.learnerEvents.skillIds, [], this.skills))
      skills.set(skillId, skill);
    return skills;
  }

  private withBaseline(learner: LearnerState, { occurredAt }: TrackEvent): LearnerState {
    if (!isBaselineDue(learner)) return learner;
    const { model, learnerSkills } = this.context;
    const views = buildSkillViews(this.collectSkills(), model, occurredAt);
    const subject = {
      learner,
      views,
      model,
      registeredSkills: learnerSkills?.registeredSkills ?? 0,
      now: occurredAt,
    };
    return { ...learner, baselineTotal: computeCurrentTotal(subject) };
  }

  buildCommit(): LearnerCommit {
    const { learnerEvents, loaded } = this;
    return {
      partition: learnerEvents.partition,
      tenant: learnerEvents.tenant,
      userId: learnerEvents.userId,
      learner: { ...this.learner, version: this.learner.version + 1 },
      skills: selectChanged(learnerEvents.skillIds, loaded.skills, this.skills),
      rows: this.rows,
      arrivalDays: this.arrivalDays,
      ids: this.ids.changes(),
      itemGeneration: loaded.learner?.items.generation ?? 0,
      items: selectChanged(learnerEvents.itemHashes, loaded.items, this.items),
      importLine: this.importLine,
      webhookEvents: this.webhookEvents,
      goalCheckAt: computeCheckTime(learnerEvents, loaded.hasGoal, this.context.subscribedTypes),
    };
  }
}

const learnerLimitMessage = 'The learner has reached the maximum number of skills (MAX_SKILLS_PER_LEARNER).';
const tenantLimitMessage =
  'The tenant has reached its maximum number of skills (MAX_SKILLS_PER_TENANT); delete unused skills.';
const idsExhaustedMessage = 'The learner has too many recent event_ids; retry later.';

const toArrivalSecond = ({ receivedAt }: TrackEvent): number => Math.floor(receivedAt / 1000);

/** The first result, or `reused` if the id belongs to a different event. */
function buildRepeatOutcome(event: TrackEvent, record: Buffer): EventOutcome {
  const firstResult = decodeFirstResult(record, event.skillIds);
  if (!firstResult.fingerprint.equals(computeFingerprint(event))) return { outcome: 'reused', data: '' };
  return { outcome: 'replayed', data: formatResult(firstResult, event.listsSkills) };
}

/**
 * Whole numbers, because counters are stored as u32. A fit (`countItems`) and a rebuild (`selectItems`) compute
 * the same counters from ClickHouse. `expected`: probability of a right answer without the item's difficulty.
 */
const buildItemDelta = (itemId: string, isCorrect: boolean, conditions: AnswerConditions): ItemDelta => ({
  itemId,
  answers: 1,
  right: isCorrect ? 1 : 0,
  expected: sigmoid(logit(conditions.pCorrect) - conditions.itemDifficulty),
});

function selectChanged<Key, Value>(
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
