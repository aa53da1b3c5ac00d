/** Reads attempts in the order of their key, page by page: whole learners, as bytes for the threads that replay them. */
import { buffer } from 'node:stream/consumers';
import type { ClickHouseClient } from '@clickhouse/client';
import { rowColumns } from '../../contracts/attempt-row.js';
import type { AttemptPage, LearnerPlace } from '../../services/rebuild/ports.js';
import { learnerSnapshots } from '../schema/archive.js';
import { baselineHolds, learnerBaselines } from '../schema/learner-baselines.js';

/** Rows of a page: about 10 MB. A learner with more gets a larger page. */
const pageRows = 30_000;
const growth = 4;

/** After a learner, by the table's key: its first column is named apart, so that the index finds the place. */
export const afterLearner = `(tenant >= {tenant:String}
  AND (tenant > {tenant:String} OR user_id > {userId:String}))`;

/** Another table in a row's columns. @param own those that it has itself: a query means what is named in it */
const inPlace = (own: readonly string[]): string =>
  rowColumns.map((name) => (own.includes(name) ? name : `NULL AS ${name}`)).join(', ');
const ofSnapshot = inPlace(['tenant', 'user_id', 'learner_seq']);
const ofBaseline = inPlace(['tenant', 'user_id', 'model_version', 'baseline_total']);

/**
 * Rows of attempts end with an empty field. Snapshots stand where the rows stood that were dropped for their age, and
 * end with the state; a baseline that rows do not tell stands last. Each table is read in its order, and no further than
 * the page.
 */
const selectPage = (after: LearnerPlace | null): string => {
  const ofLearners = `partition_id IN {partitions:Array(UInt16)}${after === null ? '' : ` AND ${afterLearner}`}
  ORDER BY tenant, user_id, learner_seq LIMIT {rows:UInt32}`;
  return `SELECT * FROM (
  SELECT ${rowColumns.join(', ')}, '' AS state FROM attempts WHERE ${ofLearners}
  UNION ALL
  SELECT ${ofSnapshot}, state FROM ${learnerSnapshots.name} WHERE ${ofLearners}
  UNION ALL
  SELECT ${ofBaseline}, toString(baseline_total) AS state FROM ${learnerBaselines.name}
  WHERE ${baselineHolds} AND ${ofLearners}
) ORDER BY tenant, user_id, learner_seq, state LIMIT {rows:UInt32} FORMAT TabSeparated`;
};

/** @returns null where no rows follow. @throws Error of the client, or for an answer that ends in the middle of a row */
export async function readAttemptPage(
  client: ClickHouseClient,
  partitions: readonly number[],
  after: LearnerPlace | null,
): Promise<AttemptPage | null> {
  for (let rows = pageRows; ; rows *= growth) {
    const { stream } = await client.exec({
      query: selectPage(after),
      query_params: { partitions, rows, ...after },
      clickhouse_settings: { date_time_output_format: 'unix_timestamp' },
    });
    const bytes = await buffer(stream);
    if (bytes.length === 0) return null;
    if (bytes.at(-1) !== lineFeed) throw new Error('ClickHouse sent a page that ends in the middle of a row');
    const end = countLines(bytes) < rows ? bytes.length : endOfWholeLearners(bytes);
    if (end > 0) return { rows: bytes.subarray(0, end), last: lastLearner(bytes.subarray(0, end)) };
  }
}

const tab = 0x09;
const lineFeed = 0x0a;

function countLines(bytes: Buffer): number {
  let lines = 0;
  for (let at = bytes.indexOf(lineFeed); at >= 0; at = bytes.indexOf(lineFeed, at + 1)) lines += 1;
  return lines;
}

/** Where the rows of the last learner begin, of whom there may be more. */
function endOfWholeLearners(bytes: Buffer): number {
  let start = startOfLine(bytes, bytes.length);
  const last = nameAt(bytes, start);
  while (start > 0) {
    const before = startOfLine(bytes, start);
    if (!bytes.subarray(before, before + last.length).equals(last)) break;
    start = before;
  }
  return start;
}

/** @param end behind the line feed of the line */
const startOfLine = (bytes: Buffer, end: number): number => bytes.lastIndexOf(lineFeed, end - 2) + 1;

/** Tenant and user as they stand in the row, each with its tab. */
function nameAt(bytes: Buffer, start: number): Buffer {
  const tenantEnd = bytes.indexOf(tab, start);
  return bytes.subarray(start, bytes.indexOf(tab, tenantEnd + 1) + 1);
}

function lastLearner(bytes: Buffer): LearnerPlace {
  const [tenant = '', userId = ''] = nameAt(bytes, startOfLine(bytes, bytes.length)).toString().split('\t');
  // A tenant has nothing that is escaped.
  return { tenant, userId: userId.replaceAll(/\\(.)/g, '$1') };
}
