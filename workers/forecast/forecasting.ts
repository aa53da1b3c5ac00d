import { encodePrediction, encodeWhatIf } from '../../src/contracts/forecast-json.js';
import { encodeForecastRow, intervalLevels } from '../../src/contracts/journal.js';
import type {
  ForecastFailure,
  ForecastOptions,
  ForecastOrder,
  ForecastReply,
  ForecastTask,
  WhatIfReply,
  WhatIfTask,
  WorkerSettings,
} from '../../src/contracts/worker-tasks.js';
import { adviceUnavailableReason, buildStudyAdvice } from '../../src/domain/advice/study-advice.js';
import { modelVersion } from '../../src/domain/base/model-version.js';
import { goalConstants } from '../../src/domain/base/score-constants.js';
import { buildSkillViews, buildUnseenView } from '../../src/domain/learner/skill-view.js';
import { computeIntervalReach } from '../../src/domain/prediction/accuracy-model.js';
import type { ForecastSubject } from '../../src/domain/score/assessment.js';
import { countDaysUntil, type GoalStatus } from '../../src/domain/score/goal.js';
import {
  defaultForecastDays,
  forecastLearner,
  forecastPlan,
  type LearnerForecast,
} from '../../src/domain/score/learner-forecast.js';
import { ApiError } from '../../src/errors.js';
import { areRegisteredSkills, countCommonSkills } from '../../src/store/catalogue/registered-skills.js';
import type { ServedModels } from '../../src/store/catalogue/served-models.js';
import { decodeGoal } from '../../src/store/learners/goals.js';
import { type Placed, placeOf } from '../../src/store/learners/learner-commands.js';
import {
  type FoundLearner,
  findLearner,
  type PackedLearner,
  readPacked,
  turnOf,
} from '../../src/store/learners/learner-reads.js';
import { noteForecasts } from '../../src/store/outbox/journal.js';
import type { RedisClient } from '../../src/store/redis/client.js';

export interface ForecastParts {
  readonly redis: () => Promise<RedisClient>;
  readonly models: ServedModels;
  readonly settings: Pick<WorkerSettings, 'partitions' | 'maxPendingForecasts'>;
  readonly now: () => number;
  readonly onLost: (forecasts: number, error: unknown) => void;
}

type Tenant = Pick<ForecastSubject, 'model' | 'registeredSkills'>;

interface Asked extends Placed {
  readonly order: ForecastOrder;
}

export async function predictAll(parts: ForecastParts, { orders }: ForecastTask): Promise<ForecastReply> {
  const { settings, onLost } = parts;
  const client = await parts.redis();
  const asked = askedOf(JSON.parse(orders), settings.partitions);
  const names = new Set(asked.map(({ tenant }) => tenant));
  const tenants = new Map([...names].map((name) => [name, readTenant(parts.models, client, name)]));
  const [learners] = await Promise.all([readPacked(client, asked), Promise.allSettled(tenants.values())]);
  const now = parts.now();
  const results: (string | null | ForecastFailure)[] = [];
  const rows: string[] = [];
  for (const [i, one] of asked.entries()) {
    const packed = learners[i] as PackedLearner;
    await turnOf(packed);
    try {
      const found = packed.unpack();
      const tenant = await tenants.get(one.tenant);
      const make = one.order.standing ? standingOf : forecastOf;
      const made = found && tenant ? make(one, found, tenant, one.order.at ?? now) : null;
      results.push(made?.result ?? null);
      if (made?.row) rows.push(made.row);
    } catch (error) {
      // A failure of one learner or tenant does not affect other forecasts.
      results.push(failureOf(error));
    }
  }
  // Not awaited: an unrecorded forecast is served but never scored. Any partition can store the rows.
  void noteForecasts(client, asked[0]?.partition ?? 0, rows, settings.maxPendingForecasts, onLost);
  return { results };
}

const askedOf = (orders: readonly ForecastOrder[], partitions: number): Asked[] =>
  orders.flatMap((order) =>
    order.userIds.map((userId) => ({ order, ...placeOf(order.tenant, userId, partitions) })),
  );

export async function readTenant(models: ServedModels, client: RedisClient, name: string): Promise<Tenant> {
  const [model, registeredSkills] = await Promise.all([models.get(name), countCommonSkills(client, name)]);
  return { model, registeredSkills };
}

const failureOf = (error: unknown): ForecastFailure =>
  error instanceof ApiError
    ? { reason: error.message, isTransient: true }
    : { reason: error instanceof Error ? (error.stack ?? error.message) : `${error}`, isTransient: false };

/** `row`: journal row for scoring the prediction later. */
export function forecastOf(
  { order, tenant, userId }: Pick<Asked, 'tenant' | 'userId'> & { readonly order: ForecastOptions },
  found: FoundLearner,
  ofTenant: Tenant,
  now: number,
) {
  const subject = subjectOf(found, ofTenant, now);
  const forecast = forecastLearner(subject, { ...order, goal: decodeGoal(found.goalRecord) });
  const row = servedRow(tenant, userId, subject, forecast, order);
  return { result: resultJson(subject, forecast, order), row };
}

/** No caller sees this forecast, so no row records it. */
function standingOf({ order }: Pick<Asked, 'order'>, found: FoundLearner, ofTenant: Tenant, now: number) {
  const goal = decodeGoal(found.goalRecord);
  // Without a baseline there are too few answers for an alert.
  if (goal === null || found.learner.baselineTotal === null) return null;
  const { current, goal: outlook } = forecastLearner(subjectOf(found, ofTenant, now), { ...order, goal });
  const { predictedTotal, probability, onTrack } = outlook;
  const standing: GoalStatus = {
    ...goal,
    currentTotal: current.total,
    predictedTotal,
    probability,
    onTrack,
  };
  return { result: JSON.stringify(standing), row: null };
}

export const subjectOf = (
  { learner, skills }: FoundLearner,
  tenant: Tenant,
  now: number,
): ForecastSubject => ({
  ...tenant,
  learner,
  views: buildSkillViews(skills, tenant.model, now),
  now,
});

function resultJson(subject: ForecastSubject, forecast: LearnerForecast, options: ForecastOptions): string {
  const { measures, neededRate } = forecast;
  const context = { ...subject, measures, goal: { ...forecast.goal, neededRate }, locale: options.locale };
  const advice = buildStudyAdvice(context);
  const reason = advice.length === 0 ? adviceUnavailableReason(context) : null;
  return encodePrediction(forecast, advice, reason, options);
}

function servedRow(
  tenant: string,
  userId: string,
  subject: ForecastSubject,
  { current, requested, goal, accuracy }: LearnerForecast,
  { days, level }: ForecastOptions,
): string {
  return encodeForecastRow({
    ...{ tenant, userId, days, level, current },
    madeAt: subject.now,
    learnerSeq: subject.learner.attempts,
    predicted: requested.scores,
    intervals: requested.intervals,
    targetScore: goal.isSet ? goal.targetScore : null,
    goalProbability: goal.isSet ? goal.probability : null,
    modelVersion,
    tenantModelVersion: subject.model.version,
    accuracy: {
      ...{ expected: accuracy.expected, sd: accuracy.sd },
      reach: intervalLevels.map((reached) => computeIntervalReach(subject.model.accuracy, accuracy, reached)),
    },
  });
}

export async function predictPlan(parts: ForecastParts, task: WhatIfTask): Promise<WhatIfReply> {
  const { tenant: name, userId } = task;
  const client = await parts.redis();
  const [found, tenant] = await Promise.all([
    findLearner(client, placeOf(name, userId, parts.settings.partitions)),
    readTenant(parts.models, client, name),
  ]);
  if (found === null) return { data: null };
  const unknownSkills = await unknownAmong(client, tenant, found, task);
  return unknownSkills.length > 0 ? { unknownSkills } : { data: planJson(found, tenant, parts.now(), task) };
}

async function unknownAmong(
  client: RedisClient,
  { model }: Tenant,
  { skills }: FoundLearner,
  { tenant, skillIds }: WhatIfTask,
): Promise<string[]> {
  const answered = new Set(skills.map(([skillId]) => skillId));
  const open = (skillIds ?? []).filter((skillId) => !answered.has(skillId) && !model.skills.has(skillId));
  if (open.length === 0) return [];
  const known = await areRegisteredSkills(client, tenant, open);
  return open.filter((_, i) => !known[i]);
}

/**
 * Without `task.days`, forecasts 30 days, and the target is due at the goal's date (at most a year ahead) or
 * after 30 days.
 */
function planJson(found: FoundLearner, tenant: Tenant, now: number, task: WhatIfTask): string {
  const { level, answersPerDay, skillIds, targetScore, userId } = task;
  const subject = subjectOf(found, tenant, now);
  const views = new Map(subject.views.map((view) => [view.skillId, view]));
  const viewOf = (skillId: string) => views.get(skillId) ?? buildUnseenView(skillId, tenant.model, now);
  const plan = { answersPerDay, skills: skillIds?.map(viewOf) ?? null };
  const goal = targetScore === null ? decodeGoal(found.goalRecord) : { targetScore, targetDate: null };
  const asked = { days: task.days ?? defaultForecastDays, level };
  const inDays =
    task.days ??
    Math.min(countDaysUntil(goal?.targetDate ?? null, now) ?? defaultForecastDays, goalConstants.horizonDays);
  const planned = forecastPlan(subject, plan, { ...asked, goal }, inDays);
  return encodeWhatIf(userId, planned, plan, asked);
}
