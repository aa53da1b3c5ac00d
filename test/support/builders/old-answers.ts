/** Answers of several months for tests of retention, and the views that analysts read. */
import type { ClickHouseClient } from '@clickhouse/client';
import { type AttemptRow, encodeAttemptRow } from '../../../src/contracts/answers/attempt-row.js';
import { dayMs } from '../../../src/domain/base/common.js';
import { indices } from '../../../src/lists.js';
import { createLogger } from '../../../src/logger.js';
import type { RetentionDependencies } from '../../../src/services/retention/apply-retention.js';
import { createRetentionFence } from '../../../src/store/audit/retention-fence.js';
import type { RedisClient } from '../../../src/store/redis/connection/client.js';
import { partitionOf } from '../../../src/store/redis/keys.js';
import { defaultPartitions } from '../../../src/store/redis/server/deployment.js';
import { selectRows } from '../../../src/warehouse/clickhouse/client.js';
import type { ClusterName } from '../../../src/warehouse/clickhouse/ddl.js';
import { createAttemptWarehouse } from '../../../src/warehouse/ingest/attempt-warehouse.js';
import { createAnswerArchive } from '../../../src/warehouse/maintenance/answer-archive.js';
import { createSkillHistory } from '../../../src/warehouse/reads/skill-history.js';
import { rollups } from '../../../src/warehouse/schema/rollups.js';
import { attemptRow, rowParts, withFurther } from './attempt-rows.js';
import { seeded } from './random.js';

export const partitions = defaultPartitions;

/** First milliseconds of the months of 2026, by number from 1. */
export const startOf = (month: number): number => Date.UTC(2026, month - 1, 1);

const mostDaysLate = 60;

/** Days from before the first answer to today. */
export const daysSinceThen = (): number => Math.ceil((Date.now() - startOf(1)) / dayMs) + mostDaysLate + 1;

const learners = Array.from({ length: 6 }, (_, i) => ({
  tenant: i % 3 === 0 ? 'other' : 'default',
  userId: `learner ${i} \\ ü`,
}));

/** For an answer with this first skill: up to two others of the four skills. */
function pickFurther(first: string, pickNumber: (count: number) => number) {
  const others = indices(4)
    .map((skill) => `skill ${skill}`)
    .filter((skillId) => skillId !== first);
  return indices(Math.max(0, pickNumber(4) - 1)).map((i) => {
    const masteryBefore = pickNumber(900) / 1000;
    const figures = {
      masteryBefore,
      masteryAfter: masteryBefore + 0.05,
      plateauDetected: pickNumber(5) === 0,
    };
    return { skillId: others[i] as string, ...figures };
  });
}

/**
 * About 20 answers per learner and month, half of them with several skills. Some are late, and some commits span the end
 * of a month.
 */
export function oldAnswers(months: readonly number[], seed = 7): AttemptRow[] {
  const random = seeded(seed);
  const pickNumber = (count: number): number => Math.floor(count * random());
  const otherRandom = seeded(seed + 1);
  return learners.flatMap(({ tenant, userId }, i) => {
    const times = months
      .flatMap((month) => Array.from({ length: 14 + i }, () => startOf(month) + random() * 28 * dayMs))
      .concat(months.flatMap((month) => (i % 2 === 0 ? [startOf(month) - 1, startOf(month)] : [])))
      .sort((a, b) => a - b);
    return times.map((receivedAt, place) => {
      const atEdge = times.filter((time, before) => before <= place && time % dayMs === 0).length;
      const mastery = 0.3 + 0.6 * random();
      const row = attemptRow(pickNumber(1e6), {
        ...{ tenant, userId, skillId: `skill ${pickNumber(4)}`, itemId: `item ${pickNumber(300)}` },
        eventId: `event ${place}`,
        occurredAt: Math.round(receivedAt - (random() < 0.2 ? pickNumber(mostDaysLate) * dayMs : 0)),
        receivedAt: Math.round(receivedAt),
        learnerSeq: place + 1,
        // The answers before and after the end of a month belong to one commit.
        learnerVersion: place + 1 - atEdge,
        masteryBefore: mastery,
        masteryAfter: Math.min(0.999, mastery + 0.05),
        plateauDetected: random() < 0.1,
      });
      return withFurther(
        rowParts(row),
        pickFurther(row.skillId, (count) => Math.floor(count * otherRandom())),
      );
    });
  });
}

/** Rows that arrived in these months of 2026, the last one included. */
export const arrivedIn = (rows: readonly AttemptRow[], first: number, last: number): AttemptRow[] =>
  rows.filter(({ event: { receivedAt } }) => receivedAt >= startOf(first) && receivedAt < startOf(last + 1));

export const encoded = ({ event, figures, conditions }: AttemptRow): string =>
  encodeAttemptRow(event, figures, conditions);

let blocks = 0;

/** Stores the rows like a drain, in one block. @returns the milliseconds of their outbox ids */
export async function store(client: ClickHouseClient, rows: readonly AttemptRow[]): Promise<number> {
  blocks += 1;
  const lines = rows.map((row, i) => {
    const { tenant, userId } = row.event;
    return `${partitionOf(tenant, userId, partitions)}\t${blocks}\t${i}\t${encoded(row)}\n`;
  });
  await createAttemptWarehouse(client).insert([Buffer.from(lines.join(''))], `block ${blocks}`);
  return blocks;
}

export const partsOf = (
  client: ClickHouseClient,
  redis: RedisClient,
  waitMs = 0,
  cluster: ClusterName = null,
): RetentionDependencies => ({
  archive: createAnswerArchive(client, cluster),
  fence: createRetentionFence(redis, partitions, waitMs),
  partitions,
  logger: createLogger('silent', 'test'),
});

const views = [
  ...rollups.flatMap(({ levels }) => levels.map(({ view }) => view.name)),
  'cohort_skill_weekly',
  'skill_velocity',
];

/** Rows of every view over the rollups and of the API's velocity. Six digits, because sums have no order. */
export async function everyView(client: ClickHouseClient): Promise<unknown> {
  const rows = await Promise.all(
    views.map((view) => selectRows<object>(client, `SELECT * FROM ${view} ORDER BY ALL`)),
  );
  const velocity = createSkillHistory(client, (_, read) => read(AbortSignal.timeout(60_000)));
  const today = Math.floor(startOf(4) / dayMs);
  const fetchDays = async (learner: (typeof learners)[number]): Promise<unknown> => {
    const found = await velocity.fetchDays({ ...learner, skillId: null, from: today - 28, today });
    return found?.map((day) => JSON.stringify(day, roundNumber)).sort();
  };
  const days = await Promise.all(learners.slice(0, 3).map(fetchDays));
  return [JSON.parse(JSON.stringify(rows), roundNumber), days];
}

const roundNumber = (_: string, value: unknown): unknown =>
  typeof value === 'number' ? Number(value.toPrecision(6)) : value;
