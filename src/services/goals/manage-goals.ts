import type { Call } from '../../contracts/access/call.js';
import { parseGoalBody } from '../../contracts/learners/goals.js';
import { parseJson } from '../../contracts/schema/json.js';
import type { GoalSetting } from '../../domain/score/goal.js';
import { ApiError, preconditionFailed } from '../../errors.js';
import type { GoalStore, GoalWrite } from '../../store/learners/goals.js';
import type { TenantCalendars } from '../catalogue/tenant-calendars.js';

export interface GoalPorts extends TenantCalendars {
  readonly goals: GoalStore;
  readonly now: () => number;
}

const goalNotFound = (): ApiError => new ApiError('GOAL_NOT_FOUND', 'This user_id has no goal.');

export async function readGoal({ goals }: GoalPorts, { tenant }: Call, userId: string) {
  const found = await goals.read(tenant, userId);
  if (found === null) throw goalNotFound();
  return { value: describeGoal(userId, found.value, found.value.updatedAt), tag: found.tag };
}

export async function putGoal(ports: GoalPorts, { tenant, body, ifMatch }: Call, userId: string) {
  const now = ports.now();
  const { toDay } = await ports.calendarOf(tenant);
  const setting = parseGoalBody(parseJson(body), toDay(now));
  const { updatedAt, tag } = await writeGoal(ports, { tenant, userId, setting, ifMatch, now });
  return { value: describeGoal(userId, setting, updatedAt), tag };
}

export async function deleteGoal(ports: GoalPorts, { tenant, ifMatch }: Call, userId: string) {
  const { updatedAt } = await writeGoal(ports, { tenant, userId, setting: null, ifMatch, now: ports.now() });
  return describeGoal(userId, null, updatedAt);
}

async function writeGoal({ goals }: GoalPorts, change: GoalWrite) {
  const written = await goals.write(change);
  if (written.status === 'written') return written;
  throw written.status === 'absent' ? goalNotFound() : preconditionFailed();
}

const describeGoal = (userId: string, goal: GoalSetting | null, updatedAt: number): object => ({
  user_id: userId,
  target_score: goal?.targetScore ?? null,
  target_date: goal?.targetDate ?? null,
  updated_at: new Date(updatedAt).toISOString(),
});
