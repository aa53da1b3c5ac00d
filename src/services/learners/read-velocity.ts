/** Recent figures come from Redis, others from daily sums in ClickHouse. */
import Type, { type Static } from 'typebox';
import type { Call } from '../../contracts/access/call.js';
import { StoredId } from '../../contracts/schema/ids.js';
import { formatDay, getCalendar } from '../../domain/base/calendar.js';
import { round4, round6, roundOrNull } from '../../domain/base/common.js';
import { velocityConstants } from '../../domain/learner/learner-constants.js';
import {
  buildClosingSeries,
  computeCurrentMomentum,
  computeFirstDay,
  computeProgress,
  computeReadDays,
  type DayClosing,
  type Slope,
} from '../../domain/learner/velocity.js';
import type { SkillState } from '../../domain/tracing/learner-states.js';
import { computePlateauSlope, isPlateau } from '../../domain/tracing/plateau.js';
import { runInSlices } from '../../slices.js';
import type { SkillHistory } from '../../warehouse/reads/skill-history.js';
import { sortIdsAfter } from '../paging/pages.js';
import { findSkillState, type HistoryPorts, readHistory, readLearner } from './read-mastery.js';

export const VelocityQuery = Type.Object({
  skill_id: Type.Optional(StoredId),
  days: Type.Integer({ minimum: 7, maximum: 365, default: 28 }),
});

export type VelocityPorts = HistoryPorts<Pick<SkillHistory, 'fetchDays'>>;

/** With a skill, all figures except momentum cover that skill. */
export async function readVelocity(
  ports: VelocityPorts,
  { tenant, query }: Call<Static<typeof VelocityQuery>>,
  userId: string,
): Promise<object> {
  const { learner, skills, model } = await readLearner(ports, tenant, userId);
  const { days, skill_id: skillId = null } = query;
  const skill = skillId === null ? null : findSkillState(skills, skillId);
  const now = ports.now();
  const calendar = getCalendar(learner.timeZone);
  const today = calendar.toDay(now);
  const from = computeFirstDay(computeReadDays(days), today);
  const { lag, found: rows } = await readHistory(ports, (history) =>
    history.fetchDays({ tenant, userId, skillId, from, today }),
  );
  const momentum = computeCurrentMomentum(learner, skills, model, now);
  const selectedSkills: readonly (readonly [string, SkillState])[] =
    skillId === null || skill === null ? [...skills] : [[skillId, skill]];
  const onPlateau = selectedSkills.flatMap(([id, { plateau }]) => (isPlateau(plateau) ? [id] : []));
  const stored = rows?.reduce((sum, row) => sum + row.answers, 0) ?? 0;
  return {
    user_id: userId,
    skill_id: skillId,
    days,
    velocity_per_attempt: roundOrNull((skill && computePlateauSlope(skill.plateau)?.slope) ?? null, round6),
    momentum: momentum && round4(momentum.value),
    momentum_label: momentum?.label ?? null,
    plateaus: sortIdsAfter(onPlateau, null),
    ...(rows === null
      ? emptyHistory
      : describeHistory(
          await runInSlices(buildClosingSeries(rows, model, { calendar, from, now })),
          days,
          today,
        )),
    source_lag_seconds: rows && (stored >= (skill ?? learner).attempts ? 0 : lag),
  };
}

function describeHistory(closings: readonly DayClosing[], days: number, today: number): object {
  const { series, velocity, answersPerDay } = computeProgress(closings, days, today);
  const week = computeProgress(closings, velocityConstants.shortDays, today);
  const month = computeProgress(closings, velocityConstants.longDays, today);
  const roundSlope = (velocity: Slope | null, of: keyof Slope = 'slope') =>
    roundOrNull(velocity?.[of] ?? null, round6);
  const perDay = roundSlope(velocity);
  const [weekly, monthly] = [roundSlope(week.velocity), roundSlope(month.velocity)];
  return {
    velocity_per_day: perDay,
    velocity_per_day_low: roundSlope(velocity, 'low'),
    velocity_per_day_high: roundSlope(velocity, 'high'),
    velocity_per_week: roundOrNull(perDay && 7 * perDay, round6),
    velocity_7d: weekly,
    acceleration: weekly === null || monthly === null ? null : round6(weekly - monthly),
    answers_per_day: round6(answersPerDay),
    active_days: series.length,
    accuracy_7d: roundOrNull(week.accuracy),
    accuracy_28d: roundOrNull(month.accuracy),
    series: series.map(({ day, mastery, answers, correct }) => ({
      date: formatDay(day),
      mastery: roundOrNull(mastery),
      attempts: answers,
      correct,
    })),
  };
}

const emptyHistory = Object.fromEntries(Object.keys(describeHistory([], 1, 0)).map((field) => [field, null]));
