import type {
  ForecastFailure,
  ForecastOptions,
  ForecastOrder,
  ForecastReply,
  ForecastTask,
  WhatIfReply,
  WhatIfTask,
} from '../../src/contracts/forecasts/forecast-tasks.js';
import { encodeForecastRow, intervalLevels } from '../../src/contracts/journal/journal.js';
import { encodePrediction, encodeWhatIf } from '../../src/contracts/models/forecast-json.js';
import type { WorkerSettings } from '../../src/contracts/settings/worker-settings.js';
import { adviseOnRange } from '../../src/domain/advice/range-advice.js';
import { adviceUnavailableReason, buildStudyAdvice } from '../../src/domain/advice/study-advice.js';
import { formulaVersion } from '../../src/domain/base/formula-version.js';
import { goalConstants } from '../../src/domain/base/score-constants.js';
import { buildSkillViews, buildUnseenView } from '../../src/domain/learner/skill-view.js';
import { computeIntervalReach, findModelFactors } from '../../src/domain/prediction/accuracy-model.js';
import { computeToday, type ForecastSubject } from '../../src/domain/score/assessment.js';
import { countDaysUntil, type GoalStanding, isDatePast } from '../../src/domain/score/goal.js';
import {
  defaultForecastDays,
  forecastGoal,
  forecastLearner,
  forecastPlan,
  type LearnerForecast,
} from '../../src/domain/score/learner-forecast.js';
import { ApiError } from '../../src/errors.js';
import { areRegisteredSkills, countCommonSkills } from '../../src/store/catalogue/registered-skills.js';
import type { ServedModels } from '../../src/store/catalogue/served-models.js';
import { decodeGoal, storeGoalStatus } from '../../src/store/learners/goals.js';
import { type LearnerLocation, locateLearner } from '../../src/store/learners/learner-commands.js';
import {
  findLearner,
  type LearnerStates,
  type PackedLearner,
  readPacked,
  waitBeforeUnpacking,
} from '../../src/store/learners/learner-reads.js';
import { recordForecasts } from '../../src/store/outbox/journal.js';
import type { RedisClient } from '../../src/store/redis/connection/client.js';

export interface ForecastDependencies {
  readonly redis: () => Promise<RedisClient>;
  readonly models: ServedModels;
  readonly settings: Pick<WorkerSettings, 'partitions' | 'maxPendingForecasts'>;
  readonly now: () => number;
  readonly onLost: (forecasts: number, error: unknown) => void;
  /** The next forecast stores the status. */
  readonly onStatusLost: (error: unknown) => void;
}

type TenantContext = Pick<ForecastSubject, 'model' | 'registeredSkills'>;

interface LearnerRequest extends LearnerLocation {
  readonly order: ForecastOrder;
}

export async function computeForecasts(
  dependencies: ForecastDependencies,
  { orders }: ForecastTask,
): Promise<ForecastReply> {
  const { settings, onLost, onStatusLost } = dependencies;
  const client = await dependencies.redis();
  const requests = expandOrders(JSON.parse(orders), settings.partitions);
  const tenantNames = new Set(requests.map(({ tenant }) => tenant));
  const tenants = new Map(
    [...tenantNames].map((name) => [name, readTenant(dependencies.models, client, name)]),
  );
  const [learners] = await Promise.all([readPacked(client, requests), Promise.allSettled(tenants.values())]);
  const now = dependencies.now();
  const results: (string | null | ForecastFailure)[] = [];
  const rows: string[] = [];
  for (const [i, request] of requests.entries()) {
    const packed = learners[i] as PackedLearner;
    await waitBeforeUnpacking(packed);
    try {
      const found = packed.unpack();
      const tenant = await tenants.get(request.tenant);
      const compute = request.order.standing ? buildGoalStanding : buildForecast;
      const computed = found && tenant ? compute(request, found, tenant, request.order.at ?? now) : null;
      results.push(computed?.result ?? null);
      if (computed?.row) rows.push(computed.row);
      if (found?.goalRecord && computed?.newStatus)
        storeGoalStatus(client, request, found.goalRecord, computed.newStatus).catch(onStatusLost);
    } catch (error) {
      // A failure of one learner or tenant does not affect other forecasts.
      results.push(toFailure(error));
    }
  }
  // Not awaited: an unrecorded forecast is served but never scored. Any partition can store the rows.
  void recordForecasts(client, requests[0]?.partition ?? 0, rows, settings.maxPendingForecasts, onLost);
  return { results };
}

const expandOrders = (orders: readonly ForecastOrder[], partitions: number): LearnerRequest[] =>
  orders.flatMap((order) =>
    order.userIds.map((userId) => ({ order, ...locateLearner(order.tenant, userId, partitions) })),
  );

export async function readTenant(
  models: ServedModels,
  client: RedisClient,
  name: string,
): Promise<TenantContext> {
  const [model, registeredSkills] = await Promise.all([models.get(name), countCommonSkills(client, name)]);
  return { model, registeredSkills };
}

const toFailure = (error: unknown): ForecastFailure =>
  error instanceof ApiError
    ? { reason: error.message, isTransient: true }
    : { reason: error instanceof Error ? (error.stack ?? error.message) : `${error}`, isTransient: false };

/** `row`: journal row for scoring the prediction later. `newStatus`: null if the goal has none, or the same. */
export function buildForecast(
  { order, tenant, userId }: Pick<LearnerRequest, 'tenant' | 'userId'> & { readonly order: ForecastOptions },
  found: LearnerStates,
  tenantContext: TenantContext,
  now: number,
) {
  const subject = buildSubject(found, tenantContext, now);
  const goal = decodeGoal(found.goalRecord);
  const forecast = forecastLearner(subject, { ...order, goal });
  const row = buildForecastRow(tenant, userId, subject, forecast, order);
  const { status } = forecast.goal;
  const newStatus = goal === null || goal.status === status ? null : status;
  return { result: buildPredictionJson(subject, forecast, order), row, newStatus };
}

/** No caller sees this forecast, so no row records it. */
function buildGoalStanding(
  _: LearnerRequest,
  found: LearnerStates,
  tenantContext: TenantContext,
  now: number,
) {
  const goal = decodeGoal(found.goalRecord);
  if (goal === null) return null;
  const outlook = forecastGoal(buildSubject(found, tenantContext, now), goal);
  const { status, currentTotal, predictedTotal, probability, onTrack, today } = outlook;
  const hasBaseline = found.learner.baselineTotal !== null;
  const figures = { status, today, hasBaseline, currentTotal, predictedTotal, probability, onTrack };
  const standing: GoalStanding = { ...goal, ...figures };
  return { result: JSON.stringify(standing), row: null, newStatus: null };
}

export const buildSubject = (
  { learner, skills }: LearnerStates,
  tenant: TenantContext,
  now: number,
): ForecastSubject => ({
  ...tenant,
  learner,
  views: buildSkillViews(skills, tenant.model, now),
  now,
});

function buildPredictionJson(
  subject: ForecastSubject,
  forecast: LearnerForecast,
  options: ForecastOptions,
): string {
  const { measures, neededRate, requested } = forecast;
  const today = computeToday(subject);
  const goal = { ...forecast.goal, neededRate };
  const context = { ...subject, today, measures, goal, locale: options.locale };
  const advice = buildStudyAdvice(context);
  const reason = advice.length === 0 ? adviceUnavailableReason(context) : null;
  const range = adviseOnRange(measures, requested, options.days, options.locale);
  return encodePrediction(forecast, advice, reason, range, options);
}

function buildForecastRow(
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
    modelVersion: formulaVersion,
    tenantModelVersion: subject.model.version,
    accuracy: {
      ...{ expected: accuracy.expected, sd: accuracy.sd },
      reach: intervalLevels.map((reached) => computeIntervalReach(subject.model.accuracy, accuracy, reached)),
      factors: findModelFactors(subject.model.accuracy, accuracy),
      cases: subject.model.accuracy.cases,
    },
  });
}

export async function computeWhatIf(
  dependencies: ForecastDependencies,
  task: WhatIfTask,
): Promise<WhatIfReply> {
  const { tenant: name, userId } = task;
  const client = await dependencies.redis();
  const [found, tenant] = await Promise.all([
    findLearner(client, locateLearner(name, userId, dependencies.settings.partitions)),
    readTenant(dependencies.models, client, name),
  ]);
  if (found === null) return { data: null };
  const unknownSkills = await findUnknownSkills(client, tenant, found, task);
  return unknownSkills.length > 0
    ? { unknownSkills }
    : { data: buildWhatIfJson(found, tenant, dependencies.now(), task) };
}

async function findUnknownSkills(
  client: RedisClient,
  { model }: TenantContext,
  { skills }: LearnerStates,
  { tenant, skillIds }: WhatIfTask,
): Promise<string[]> {
  const answered = new Set(skills.map(([skillId]) => skillId));
  const candidates = (skillIds ?? []).filter(
    (skillId) => !answered.has(skillId) && !model.skills.has(skillId),
  );
  if (candidates.length === 0) return [];
  const known = await areRegisteredSkills(client, tenant, candidates);
  return candidates.filter((_, i) => !known[i]);
}

/**
 * Without `task.days`, forecasts 30 days, and the target is due at the goal's date (at most a year ahead) or
 * after 30 days.
 */
function buildWhatIfJson(found: LearnerStates, tenant: TenantContext, now: number, task: WhatIfTask): string {
  const { level, answersPerDay, skillIds, targetScore, userId } = task;
  const subject = buildSubject(found, tenant, now);
  const views = new Map(subject.views.map((view) => [view.skillId, view]));
  const findView = (skillId: string) => views.get(skillId) ?? buildUnseenView(skillId, tenant.model, now);
  const plan = { answersPerDay, skills: skillIds?.map(findView) ?? null };
  const goal =
    targetScore === null ? decodeGoal(found.goalRecord) : { targetScore, targetDate: null, status: null };
  const today = computeToday(subject);
  const options = { days: task.days ?? defaultForecastDays, level };
  const targetDate = goal === null || isDatePast(goal.targetDate, today) ? null : goal.targetDate;
  const daysToTarget =
    task.days ??
    Math.min(countDaysUntil(targetDate, today) ?? defaultForecastDays, goalConstants.horizonDays);
  const forecast = forecastPlan(subject, plan, { ...options, goal }, daysToTarget);
  return encodeWhatIf(userId, forecast, plan, options);
}
