import type { ClickHouseClient } from '@clickhouse/client';
import { StartError } from '../../src/lifecycle.js';

export interface School {
  readonly tenant: string;
  readonly learners: number;
  readonly days: number;
  /** Answers of a learner per day, and consecutive answers on one of 100 skills. */
  readonly perDay: number;
  readonly perSkill: number;
}

export const countAnswers = ({ learners, days, perDay }: School): number => learners * days * perDay;

/** Each block has all learners, as in production. */
export async function generateAnswers(
  client: ClickHouseClient,
  school: School,
  onDay: (day: number) => unknown = () => undefined,
): Promise<void> {
  for (let day = 0; day < school.days; day++) {
    await client.command({
      query: insertDaySql,
      query_params: { ...school, day },
      // As many rows as a full block of the pipeline.
      clickhouse_settings: {
        max_block_size: '100000',
        min_insert_block_size_rows: '100000',
        max_insert_threads: '1',
      },
    });
    await onDay(day);
  }
}

const numberParameter = (name: string): string => `{${name}:UInt32}`;
const drawExpression = (of: string): string =>
  `(cityHash64(n, ${numberParameter('day')}, '${of}') % 1000003 / 1000003)`;

const insertDaySql = `
INSERT INTO attempts (tenant, user_id, skill_id, item_id, event_id, is_correct, time_spent_seconds, confidence_score,
  occurred_at, received_at, learner_seq, mastery_before, mastery_after, p_correct, plateau_detected, p_init, p_learn, p_guess,
  p_slip, model_version, learner_version, partition_id, outbox_ms, outbox_seq)
SELECT {tenant:String}, concat('learner-', toString(learner)), concat('skill-', toString(skill)),
  concat('item-', toString(skill), '-', toString(cityHash64(n) % 15)), lower(hex(cityHash64(n, ${numberParameter('day')}))),
  ${drawExpression('right')} < 0.7, 1 + round(60 * ${drawExpression('time')}), 1 + cityHash64(n, 'sure') % 5,
  toDateTime64(toStartOfDay(now('UTC')), 3, 'UTC') - toIntervalDay(${numberParameter('days')} - ${numberParameter('day')})
    + toIntervalSecond(28800 + cityHash64(learner, ${numberParameter('day')}) % 36000 + 40 * place) AS at,
  at + toIntervalMillisecond(cityHash64(n) % 500), ${numberParameter('day')} * ${numberParameter('perDay')} + place + 1 AS seq,
  0.9 * ${drawExpression('mastery')} AS mastery, mastery + 0.1 * ${drawExpression('gain')}, ${drawExpression('p')}, ${drawExpression('plateau')} < 0.05,
  0.3, 0.1, 0.2, 0.1, 1, seq, learner % 16, toUnixTimestamp64Milli(at), 65536 * (n % 100)
FROM (
  SELECT number AS n, intDiv(n, ${numberParameter('perDay')}) AS learner, n % ${numberParameter('perDay')} AS place,
    cityHash64(learner, ${numberParameter('day')}, intDiv(place, ${numberParameter('perSkill')})) % 100 AS skill
  FROM numbers(toUInt64(${numberParameter('learners')}) * ${numberParameter('perDay')})
)`;

export const generateForecasts = (client: ClickHouseClient, school: School): Promise<unknown> =>
  client.command({ query: insertForecastsSql, query_params: { ...school } });

const insertForecastsSql = `
INSERT INTO served_forecasts (tenant, user_id, made_at, forecast_days, confidence_level, learner_seq, expected_share, share_sd,
  below_50, above_50, below_80, above_80, below_95, above_95)
SELECT {tenant:String}, concat('learner-', toString(number % ${numberParameter('learners')})),
  toDateTime64(toStartOfDay(now('UTC')), 3, 'UTC')
    - toIntervalDay(${numberParameter('days')} - 7 * intDiv(number, ${numberParameter('learners')})), 7, 0.8,
  100, 0.7, 0.1, 0.7, 0.7, 1.3, 1.3, 2, 2
FROM numbers(toUInt64(${numberParameter('learners')}) * intDiv(${numberParameter('days')} - 1, 7))`;

/** Reads the complete response. @returns its last part @throws StartError with ClickHouse's message */
export async function queryAsAnalyst(
  analystUrl: string,
  query: string,
  settings: Record<string, string> = {},
  signal?: AbortSignal,
): Promise<string> {
  const { origin, username, password } = new URL(analystUrl);
  const response = await fetch(`${origin}/?${new URLSearchParams(settings)}`, {
    method: 'POST',
    body: query,
    headers: { authorization: `Basic ${btoa(`${username}:${password}`)}` },
    ...(signal && { signal }),
  });
  if (response.status !== 200) throw new StartError(`Analyst query failed: ${await response.text()}`);
  let last = new Uint8Array();
  for await (const part of response.body ?? []) last = part;
  return new TextDecoder().decode(last);
}
