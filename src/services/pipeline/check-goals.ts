/** Runs a minute after an answer and once a day. */

import type { Compute } from '../../compute/compute.js';
import { waitForAll } from '../../concurrency.js';
import { createWebhookEvent, isSubscribed } from '../../contracts/webhook-events.js';
import { round4 } from '../../domain/base/common.js';
import { detectGoalChanges, type GoalStatus, updateAlerts } from '../../domain/score/goal.js';
import { groupBy, indices, splitIntoParts } from '../../lists.js';
import type { Logger } from '../../logger.js';
import {
  type CheckResult,
  computeDailyCheck,
  type GoalCheck,
  type GoalChecks,
  subscribesToGoals,
} from '../../store/learners/goal-checks.js';
import { standardForecast } from '../read/forecast-scores.js';

export interface GoalCheckPorts {
  readonly checks: GoalChecks;
  readonly forecaster: Pick<Compute, 'forecast'>;
  readonly now: () => number;
  readonly logger: Logger;
}

/** Few, so that API forecasts run in between. */
const together = 8;

/** A later run repeats incomplete checks. @throws the first error, after all other checks */
export async function checkGoals(ports: GoalCheckPorts, partitions: number, signal: AbortSignal) {
  const checked: Promise<void>[] = [];
  for (const partition of indices(partitions)) {
    if (signal.aborted) break;
    checked.push(checkPartition(ports, partition));
    await Promise.allSettled(checked);
  }
  await waitForAll(checked);
}

/** A tenant with an unusable model does not affect others. */
async function checkPartition(ports: GoalCheckPorts, partition: number): Promise<void> {
  const due = groupBy(await ports.checks.claim(partition, ports.now()), ({ tenant }) => tenant);
  const wanted = await ports.checks.fetchSubscriptions([...due.keys()]);
  const each = [...due.values()].map(async (own, i) => {
    for (const some of splitIntoParts(own, together)) await checkSome(ports, some, wanted[i] ?? '');
  });
  await waitForAll(each);
}

async function checkSome(
  { checks, forecaster, now, logger }: GoalCheckPorts,
  some: readonly GoalCheck[],
  wanted: string,
): Promise<void> {
  const { tenant } = some[0] as GoalCheck;
  const userIds = some.map(({ userId }) => userId);
  const order = { ...standardForecast, tenant, userIds, standing: true } as const;
  const results = await forecaster.forecast(order, () => undefined);
  for (const [i, check] of some.entries()) {
    const result = results[i] ?? null;
    // A retry would fail too. The next answer schedules another check.
    if (result instanceof Error) logger.error({ err: result, tenant }, 'a goal cannot be checked');
    const standing = typeof result === 'string' ? (JSON.parse(result) as GoalStatus) : null;
    await checks.complete(check, settlementOf(check, standing, wanted, now()));
  }
}

/** @param standing null without answers or goal, or if the learner is unreadable */
function settlementOf(
  check: GoalCheck,
  standing: GoalStatus | null,
  wanted: string,
  now: number,
): CheckResult {
  if (standing === null) return { alerts: check.alerts, events: [], nextAt: null };
  const nextAt = computeDailyCheck(standing, now);
  if (!subscribesToGoals(wanted)) return { alerts: null, events: [], nextAt };
  const before = check.alerts?.updatedAt === standing.updatedAt ? check.alerts : null;
  const alerts = updateAlerts(before, standing);
  const data = dataOf(check.userId, standing);
  const events = detectGoalChanges(before, alerts)
    .filter((type) => isSubscribed(wanted, type))
    .map((type) => createWebhookEvent(type, check.tenant, check.userId, now, data));
  return { alerts, events, nextAt };
}

const dataOf = (userId: string, standing: GoalStatus) => ({
  user_id: userId,
  target_score: standing.targetScore,
  target_date: standing.targetDate,
  current_total: standing.currentTotal,
  predicted_total: standing.predictedTotal,
  goal_probability: round4(standing.probability),
});
