/** Answers that lead to webhook events of skills, and the events that their rows imply. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ClickHouseClient } from '@clickhouse/client';
import { isMasteryReached } from '../../../src/domain/tracing/learner-states.js';
import { groupBy } from '../../../src/lists.js';
import { selectRows } from '../../../src/warehouse/clickhouse/client.js';
import type { Caller } from '../http/http.js';

export const skillTypes = ['mastery.reached', 'plateau.detected', 'plateau.ended'] as const;

type Row = Readonly<Record<'user_id' | 'skill_id' | 'event_id', string>> &
  Readonly<Record<'mastery_after' | 'plateau_detected', number>>;

export type SkillEvent = readonly [type: string, skillId: string, eventId: string];

/** @returns the events of each learner, in order */
export async function expectedEvents(
  clickhouse: ClickHouseClient,
  { tenant, userId = null }: { readonly tenant: string; readonly userId?: string | null },
): Promise<Map<string, SkillEvent[]>> {
  const rows = await selectRows<Row>(
    clickhouse,
    `SELECT user_id, skill_id, event_id, mastery_after, plateau_detected FROM attempts
     WHERE tenant = {tenant:String} AND ({userId:Nullable(String)} IS NULL OR user_id = {userId:Nullable(String)})
     ORDER BY user_id, attempts.learner_seq`,
    { params: { tenant, userId } },
  );
  const states = new Map<string, { reached: boolean; flat: boolean }>();
  const eventsOf = ({ user_id, skill_id, event_id, mastery_after, plateau_detected }: Row): SkillEvent[] => {
    const name = JSON.stringify([user_id, skill_id]);
    const before = states.get(name) ?? { reached: false, flat: false };
    const reached = isMasteryReached(mastery_after, before.reached);
    const flat = Number(plateau_detected) === 1;
    states.set(name, { reached, flat });
    const types = reached && !before.reached ? ['mastery.reached'] : [];
    if (flat !== before.flat) types.push(flat ? 'plateau.detected' : 'plateau.ended');
    return types.map((type) => [type, skill_id, event_id]);
  };
  const byLearner = groupBy(rows, ({ user_id }) => user_id);
  return new Map([...byLearner].map(([userId, own]) => [userId, own.flatMap(eventsOf)]));
}

/** Answers on three skills that reach mastery, lose it, and enter plateaus. */
export const flatAndSteep = (random: () => number, userId: string, count: number, name: string) =>
  Array.from({ length: count }, (_, i) => ({
    user_id: userId,
    skill_id: `skill-${i % 3}`,
    is_correct: random() < ([0.85, 0.5, 0.7][i % 3] ?? 0),
    event_id: `${name}-${i}`,
  }));

/** Sends each answer until it is counted. @param callerNow returns the caller of a running process */
export async function sendUntilCounted(
  callerNow: () => Caller,
  events: readonly object[],
  onCounted: () => void = () => undefined,
): Promise<void> {
  for (const event of events) {
    // A request fails when its process is killed.
    const track = () => callerNow().track(event);
    while ((await track().catch(() => null))?.status !== 200) await sleep(20);
    onCounted();
  }
}
