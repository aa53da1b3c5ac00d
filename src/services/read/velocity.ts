/** How fast a learner learns: the recent part from the learner's state, the long one from daily sums in ClickHouse. */
import Type, { type Static } from 'typebox';
import { Id } from '../../contracts/ids.js';
import { dayMs, dayOf } from '../../domain/base/days.js';
import { velocityModel } from '../../domain/base/params.js';
import { round4, round6 } from '../../domain/base/probability.js';
import type { Slope } from '../../domain/learner/theil-sen.js';
import {
  type Closing,
  closingSeries,
  daysToRead,
  firstDayOf,
  momentumNow,
  progressOver,
  type SkillDay,
} from '../../domain/learner/velocity.js';
import type { Momentum } from '../../domain/tracing/momentum.js';
import { isPlateau, plateauSlope } from '../../domain/tracing/plateau.js';
import type { SkillState } from '../../domain/tracing/states.js';
import { inSlices } from '../../slices.js';
import type { Logger } from '../../telemetry.js';
import { sortedAfter } from './pages.js';
import { type MasteryPorts, readLearner, skillOf } from './read-mastery.js';

/** Query of GET /api/v1/velocity/{user_id}. */
export const VelocityQuery = Type.Object({
  skill_id: Type.Optional(Id),
  days: Type.Integer({ minimum: 7, maximum: 365, default: 28 }),
});
export type VelocityQuery = Static<typeof VelocityQuery>;

/** Which daily sums of a learner are asked for. */
export interface DaysQuery {
  readonly tenant: string;
  readonly userId: string;
  /** Null: all skills. */
  readonly skillId: string | null;
  /** UTC days since 1970: where the window starts, and today. */
  readonly from: number;
  readonly today: number;
}

/** Reads daily sums. @throws what the store says, when it is away or does not answer in a few seconds */
export interface VelocityHistory {
  /**
   * One row for each skill and day of the window, and one for each skill, of the day before `from`, for all that
   * was earlier; in no order. Null where too many of the tenant are read already.
   */
  days(query: DaysQuery): Promise<readonly SkillDay[] | null>;
}

export interface VelocityPorts extends MasteryPorts {
  readonly history: VelocityHistory;
  /** Seconds that the oldest answer has waited for ClickHouse; null where it cannot be told. */
  readonly sourceLagSeconds: () => Promise<number | null>;
  readonly logger: Logger;
}

/**
 * Data of GET /api/v1/velocity/{user_id}. With a skill all of it is about that skill, but for momentum, which is the
 * learner's: its averages are kept for all skills together.
 *
 * @throws ApiError USER_NOT_FOUND, SKILL_NOT_FOUND, UNAVAILABLE
 */
export async function readVelocity(
  ports: VelocityPorts,
  tenant: string,
  userId: string,
  { skill_id, days }: VelocityQuery,
): Promise<object> {
  const found = await readLearner(ports, tenant, userId);
  const skillId = skill_id ?? null;
  const skill = skillId === null ? null : skillOf(found.skills, skillId);
  const now = ports.now();
  const window = { from: firstDayOf(daysToRead(days), dayOf(now)), today: dayOf(now) };
  // Before the rows: an answer that is missing among them was waiting then.
  const lag = await ports.sourceLagSeconds();
  const rows = await readDays(ports, { tenant, userId, skillId, ...window });
  return {
    user_id: userId,
    skill_id: skillId,
    days,
    velocity_per_attempt: skill && velocityPerAttempt(skill),
    ...describeMomentum(momentumNow(found.learner, found.skills, found.model, now)),
    plateaus: plateausOf(skillId === null || skill === null ? found.skills : [[skillId, skill]]),
    ...(rows === null
      ? noHistory
      : describeHistory(
          await inSlices(closingSeries(rows, found.model, window.from, now)),
          days,
          window.today,
        )),
    source_lag_seconds: rows && (isComplete(rows, (skill ?? found.learner).attempts) ? 0 : lag),
  };
}

function velocityPerAttempt({ plateau }: SkillState): number | null {
  const trend = plateauSlope(plateau);
  return trend && round6(trend.slope);
}

const describeMomentum = (momentum: Momentum | null): object => ({
  momentum: momentum && round4(momentum.value),
  momentum_label: momentum?.label ?? null,
});

const plateausOf = (skills: Iterable<readonly [string, SkillState]>): string[] =>
  sortedAfter(
    [...skills].flatMap(([skillId, { plateau }]) => (isPlateau(plateau) ? [skillId] : [])),
    null,
  );

/** Null without ClickHouse, or where it is busy: the recent part is known all the same. */
async function readDays({ history, logger }: VelocityPorts, query: DaysQuery) {
  try {
    return await history.days(query);
  } catch (error) {
    logger.warn({ err: error }, "ClickHouse did not tell a learner's days");
    return null;
  }
}

/** @param attempts counted answers of what the rows are about, by Redis */
const isComplete = (rows: readonly SkillDay[], attempts: number): boolean =>
  rows.reduce((sum, row) => sum + row.attempts, 0) >= attempts;

const noHistory = {
  velocity_per_day: null,
  velocity_per_day_low: null,
  velocity_per_day_high: null,
  velocity_per_week: null,
  velocity_7d: null,
  acceleration: null,
  answers_per_day: null,
  active_days: null,
  accuracy_7d: null,
  accuracy_28d: null,
  series: null,
};

/** Figures that follow from others do so as they are shown. */
function describeHistory(
  closings: readonly Closing[],
  days: number,
  today: number,
): Record<keyof typeof noHistory, unknown> {
  const { series, velocity, answersPerDay } = progressOver(closings, days, today);
  const week = progressOver(closings, velocityModel.shortDays, today);
  const month = progressOver(closings, velocityModel.longDays, today);
  const perDay = shownRate(velocity);
  const [weekly, monthly] = [shownRate(week.velocity), shownRate(month.velocity)];
  return {
    velocity_per_day: perDay,
    velocity_per_day_low: shownRate(velocity, 'low'),
    velocity_per_day_high: shownRate(velocity, 'high'),
    velocity_per_week: perDay === null ? null : round6(7 * perDay),
    velocity_7d: weekly,
    acceleration: weekly === null || monthly === null ? null : round6(weekly - monthly),
    answers_per_day: round6(answersPerDay),
    active_days: series.length,
    accuracy_7d: shownShare(week.accuracy),
    accuracy_28d: shownShare(month.accuracy),
    series: series.map(describeDay),
  };
}

const describeDay = ({ day, mastery, attempts, correct }: Closing): object => ({
  date: new Date(day * dayMs).toISOString().slice(0, 10),
  mastery: shownShare(mastery),
  attempts,
  correct,
});

const shownRate = (velocity: Slope | null, of: keyof Slope = 'slope'): number | null =>
  velocity === null ? null : round6(velocity[of]);

const shownShare = (share: number | null): number | null => (share === null ? null : round4(share));
