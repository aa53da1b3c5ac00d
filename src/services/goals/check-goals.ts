/** Runs a minute after an answer and once a day. */

import type { Compute } from '../../compute/compute.js';
import { waitForAll } from '../../concurrency.js';
import { createWebhookEvent, isSubscribed } from '../../contracts/webhooks/webhook-events.js';
import { round4 } from '../../domain/base/common.js';
import { detectGoalChanges, type GoalStanding, isDatePast, updateAlerts } from '../../domain/score/goal.js';
import { groupBy, indices, splitIntoParts } from '../../lists.js';
import type { Logger } from '../../logger.js';
import {
  type CheckResult,
  computeDailyCheck,
  type GoalCheck,
  type GoalChecks,
  subscribesToGoals,
} from '../../store/learners/goal-checks.js';
import { defaultForecast } from '../forecasts/forecast-scores.js';

export interface GoalCheckPorts {
  readonly checks: GoalChecks;
  readonly forecaster: Pick<Compute, 'forecast'>;
  readonly now: () => number;
  readonly logger: Logger;
}

/** Few, so that API forecasts run in between. */
const learnersPerForecast = 8;

/** A later run repeats incomplete checks. @throws the first error, after all other checks */
export async function checkGoals(ports: GoalCheckPorts, partitions: number, signal: AbortSignal) {
  const partitionChecks: Promise<void>[] = [];
  for (const partition of indices(partitions)) {
    if (signal.aborted) break;
    partitionChecks.push(checkPartition(ports, partition));
    await Promise.allSettled(partitionChecks);
  }
  await waitForAll(partitionChecks);
}

/** A tenant with an unusable model does not affect others. */
async function checkPartition(ports: GoalCheckPorts, partition: number): Promise<void> {
  const due = groupBy(await ports.checks.claim(partition, ports.now()), ({ tenant }) => tenant);
  const subscriptions = await ports.checks.fetchSubscriptions([...due.keys()]);
  const tenantChecks = [...due.values()].map(async (own, i) => {
    for (const some of splitIntoParts(own, learnersPerForecast))
      await checkLearners(ports, some, subscriptions[i] ?? '');
  });
  await waitForAll(tenantChecks);
}

async function checkLearners(
  { checks, forecaster, now, logger }: GoalCheckPorts,
  some: readonly GoalCheck[],
  subscriptions: string,
): Promise<void> {
  const { tenant } = some[0] as GoalCheck;
  const userIds = some.map(({ userId }) => userId);
  const order = { ...defaultForecast, tenant, userIds, standing: true } as const;
  const results = await forecaster.forecast(order, () => undefined);
  for (const [i, check] of some.entries()) {
    const result = results[i] ?? null;
    // A retry would fail too. The next answer schedules another check.
    if (result instanceof Error) logger.error({ err: result, tenant }, 'cannot check a goal');
    const standing = typeof result === 'string' ? (JSON.parse(result) as GoalStanding) : null;
    await checks.complete(check, computeCheckResult(check, standing, subscriptions, now()));
  }
}

/** @param standing null without answers or goal, or if the learner is unreadable */
function computeCheckResult(
  check: GoalCheck,
  standing: GoalStanding | null,
  subscriptions: string,
  now: number,
): CheckResult {
  if (standing === null || !standing.hasBaseline) return { alerts: check.alerts, events: [], nextAt: null };
  const nextAt = computeDailyCheck(standing, now);
  if (!subscribesToGoals(subscriptions)) return { alerts: null, events: [], nextAt };
  const before = check.alerts?.updatedAt === standing.updatedAt ? check.alerts : null;
  const alerts = updateAlerts(before, standing);
  const data = buildEventData(check.userId, standing);
  const events = detectGoalChanges(before, alerts)
    .filter((type) => isSubscribed(subscriptions, type))
    .filter((type) => type !== 'goal.at_risk' || !isDatePast(standing.targetDate, standing.today))
    .map((type) => createWebhookEvent(type, check.tenant, check.userId, now, data));
  return { alerts, events, nextAt };
}

const buildEventData = (userId: string, standing: GoalStanding) => ({
  user_id: userId,
  target_score: standing.targetScore,
  target_date: standing.targetDate,
  current_total: standing.currentTotal,
  predicted_total: standing.predictedTotal,
  goal_probability: round4(standing.probability),
});
