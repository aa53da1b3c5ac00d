import { allDays, type DayRange } from '../../contracts/schema/tenant-day.js';
import { formatDay } from '../../domain/base/calendar.js';

export interface Mismatch {
  readonly kind: MismatchKind;
  readonly tenant: string;
  /** Days since 1970: UTC days of arrival; for rollups, local days of answers or `allDays`. */
  readonly day: number;
  readonly partition: number | null;
  /** Rollup and column; null for `attempts`. */
  readonly place: string | null;
  readonly expected: number;
  readonly found: number;
}

export const balanceFields = ['accepted', 'removed', 'stored', 'waiting', 'parked'] as const;

/** Answers by day of arrival. Without an error, accepted - removed = stored + waiting + parked. */
export type Balance = Record<(typeof balanceFields)[number], number>;

export interface AuditReport {
  /** Start, in Unix milliseconds. */
  readonly at: number;
  readonly seconds: number;
  readonly days: DayRange;
  /** `raw`: stored answers, which each rollup should sum up to. */
  readonly totals: Balance & { readonly raw: number };
  readonly mismatches: readonly Mismatch[];
  readonly notCompared: readonly string[];
}

export const describeReport = ({ at, seconds, days, totals, mismatches, notCompared }: AuditReport) => ({
  at: new Date(at).toISOString(),
  ...{ seconds, from: formatAuditDay(days.from), to: formatAuditDay(days.to - 1) },
  ...totals,
  mismatches: mismatches.map(describeMismatch),
  not_compared: notCompared,
});

const meanings = {
  missing: 'rows are lost: accepted answers are missing from ClickHouse, the outbox and the parked rows',
  surplus:
    'more answers are stored than were accepted: rows are stored twice, or Redis lost its last second (appendfsync everysec) after ClickHouse had stored the answers, so the state of their learners lacks them',
  doubled_id: 'rows share an outbox id: a block was stored twice',
  doubled_number:
    'answers of a learner share a learner_seq: an answer was stored twice, or Redis lost its last second (appendfsync everysec) and numbers were assigned again',
  rollup: 'the sums of the rollup differ from the sums of attempts',
};

export type MismatchKind = keyof typeof meanings;
export const mismatchKinds = Object.keys(meanings);

export const describeMismatch = (mismatch: Mismatch) => ({
  ...mismatch,
  day: formatAuditDay(mismatch.day),
  meaning: meanings[mismatch.kind],
  look: buildInvestigationQuery(mismatch),
});

function buildInvestigationQuery({ kind, tenant, day, partition, place }: Mismatch): string {
  const dayFilter = `tenant = '${tenant}' AND toDate(received_at) = '${formatAuditDay(day)}'`;
  const partitionFilter = partition === null ? dayFilter : `${dayFilter} AND partition_id = ${partition}`;
  if (kind === 'rollup') {
    const rollup = place?.split('.')[0] ?? '';
    const filterDay = (column: string) =>
      day === allDays ? '' : ` AND ${column} = '${formatAuditDay(day)}'`;
    const raw = `SELECT count() FROM skill_answers AS a WHERE a.tenant = '${tenant}'${filterDay('a.local_date')}`;
    return `SELECT sum(attempts) AS rollup, (${raw}) AS raw FROM ${rollup} WHERE tenant = '${tenant}'${filterDay('day')}`;
  }
  if (kind === 'doubled_id')
    return `SELECT partition_id, outbox_ms, outbox_seq, count(), any(user_id), any(learner_seq) FROM attempts WHERE ${partitionFilter} GROUP BY partition_id, outbox_ms, outbox_seq HAVING count() > 1`;
  if (kind === 'missing')
    return `SELECT user_id, max(learner_seq) AS newest, count() AS stored FROM attempts WHERE tenant = '${tenant}' AND partition_id = ${partition} GROUP BY user_id HAVING stored != newest AND max(toDate(received_at)) >= '${formatAuditDay(day)}'`;
  return `SELECT user_id, learner_seq, count(), groupArray((outbox_ms, outbox_seq)) FROM attempts WHERE ${partitionFilter} GROUP BY user_id, learner_seq HAVING count() > 1`;
}

/** @param day since 1970 @returns YYYY-MM-DD, or `all days` */
export const formatAuditDay = (day: number): string => (day === allDays ? 'all days' : formatDay(day));
