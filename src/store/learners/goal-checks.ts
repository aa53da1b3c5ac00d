/** A run claims due checks for a limited time. If it dies, a later run claims them. */
import { learnerName, splitTenantName } from '../../contracts/learners/learner-name.js';
import { isSubscribed, toStreamFields, type WebhookEvent } from '../../contracts/webhooks/webhook-events.js';
import { dayMs, toUtcDay } from '../../domain/base/common.js';
import { type GoalAlerts, type GoalSetting, type GoalStanding, isDatePast } from '../../domain/score/goal.js';
import { splitIntoParts } from '../../lists.js';
import { defineScript } from '../redis/commands/script.js';
import { appendEventsLua, fetchSubscriptions } from '../redis/commands/webhook-events.js';
import { mapRedisErrors, type RedisClient } from '../redis/connection/client.js';
import { goalChecksKey, partitionPrefix } from '../redis/keys.js';
import type { LearnerLocation } from './learner-commands.js';

/** Answers in the meantime share the check. */
export const checkDelayMs = 60_000;
/** Longer than a run takes. */
const claimMs = 30_000;
/** Per partition and run: about 30 ms of forecasts. */
const maxClaims = 100;

export const subscribesToGoals = (subscribedTypes: string): boolean =>
  isSubscribed(subscribedTypes, 'goal.reached') || isSubscribed(subscribedTypes, 'goal.at_risk');

export interface GoalCheck extends LearnerLocation {
  /** Unix milliseconds. Identifies the claim. */
  readonly claimedUntil: number;
  readonly alerts: GoalAlerts | null;
}

export interface CheckResult {
  readonly alerts: GoalAlerts | null;
  readonly events: readonly WebhookEvent[];
  /** Unix milliseconds; null: only an answer causes the next check. */
  readonly nextAt: number | null;
}

/** Unix milliseconds; null without a future target date. */
export const computeDailyCheck = (
  { targetDate, today }: Pick<GoalStanding, 'targetDate' | 'today'>,
  now: number,
): number | null => (targetDate === null || isDatePast(targetDate, today) ? null : now + dayMs);

/** At a random time within a day. Yesterday in UTC may be today in the zone of the learner. */
export async function restoreDailyCheck(
  client: RedisClient,
  location: LearnerLocation,
  goal: Pick<GoalSetting, 'targetDate'>,
) {
  if (goal.targetDate === null || isDatePast(goal.targetDate, toUtcDay(Date.now()) - 1)) return;
  const name = learnerName(location.tenant, location.userId);
  await mapRedisErrors(
    client.zadd(goalChecksKey(location.partition), 'NX', Date.now() + Math.random() * dayMs, name),
  );
}

export type GoalChecks = ReturnType<typeof createGoalChecks>;

export const createGoalChecks = (client: RedisClient) => ({
  fetchSubscriptions: (tenants: readonly string[]) => fetchSubscriptions(client, tenants),
  claim: async (partition: number, now: number): Promise<GoalCheck[]> => {
    const claimedUntil = now + claimMs;
    const claimed = await claimChecks(client, partitionPrefix(partition), now, maxClaims, claimedUntil);
    return splitIntoParts(claimed, 2).map(([name = '', alerts = '']) => {
      const [tenant, userId] = splitTenantName(name);
      return { partition, tenant, userId, claimedUntil, alerts: alerts === '' ? null : JSON.parse(alerts) };
    });
  },
  /** Does nothing if the claim ended. */
  complete: (check: GoalCheck, { alerts, events, nextAt }: CheckResult): Promise<unknown> =>
    completeCheck(
      ...([client, partitionPrefix(check.partition), learnerName(check.tenant, check.userId)] as const),
      ...([check.claimedUntil, alerts === null ? '' : JSON.stringify(alerts), nextAt ?? ''] as const),
      ...events.flatMap(toStreamFields),
    ),
});

/** `most`, `until`: number and end of claims. Result: pairs of name and alerts or ''. */
const claimChecks = defineScript(1)<[prefix: string, now: number, most: number, until: number], string[]>(`
local checks, claimed, found = KEYS[1] .. ':goal:checks', {}, {}
for _, member in ipairs(redis.call('ZRANGEBYSCORE', checks, '-inf', ARGV[1], 'LIMIT', 0, 10 * ARGV[2])) do
  if #found >= 2 * ARGV[2] then break end
  local name = string.gsub(member, '^!', '')
  -- Removed before the forecast is computed, so that a later answer schedules another check.
  redis.call('ZREM', checks, name)
  if not claimed[name] then
    claimed[name] = true
    -- The learner may have been erased.
    if redis.call('HEXISTS', KEYS[1] .. ':l:' .. name, 'G') == 1 then
      redis.call('ZADD', checks, ARGV[3], '!' .. name)
      found[#found + 1] = name
      found[#found + 1] = redis.call('HGET', KEYS[1] .. ':goal:alerts', name) or ''
    else
      redis.call('ZREM', checks, '!' .. name)
    end
  end
end
return found
`);

/** `args`: end of the claim, alerts or '', next check or '', then events. */
const completeCheck = defineScript(1)<[prefix: string, name: string, ...args: (string | number)[]], null>(`
${appendEventsLua}
local name, checks, alerts = ARGV[1], KEYS[1] .. ':goal:checks', KEYS[1] .. ':goal:alerts'
if tonumber(redis.call('ZSCORE', checks, '!' .. name)) ~= tonumber(ARGV[2]) then return end
redis.call('ZREM', checks, '!' .. name)
if ARGV[3] == '' then redis.call('HDEL', alerts, name) else redis.call('HSET', alerts, name, ARGV[3]) end
if ARGV[4] ~= '' then redis.call('ZADD', checks, 'NX', ARGV[4], name) end
appendEvents(KEYS[1] .. ':events', 5)
`);
