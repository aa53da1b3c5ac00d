/** Reads attempts in the order of their key, whole learners at a time, as bytes for the threads that replay them. */
import { buffer } from 'node:stream/consumers';
import type { ClickHouseClient } from '@clickhouse/client';
import { rowColumns } from '../../contracts/attempt-row.js';
import { unescapeText } from '../../contracts/attempt-row-reader.js';
import { type LearnerPlace, learnerName, learnerNameSql } from '../../contracts/learner-name.js';
import type { LearnerRows } from '../../contracts/rebuild-tasks.js';
import { learnerSnapshots } from '../schema/archive.js';

/** Learners in the order of tenant and user. */
export interface AttemptPage {
  readonly rows: LearnerRows;
  readonly last: LearnerPlace;
}

/** Rows of a page: about 10 MB. A learner with more gets a larger page. */
const pageRows = 30_000;
const growth = 4;

/** After a learner, by the table's key: its first column stands alone as well, so that the index finds the place. */
export const afterLearner = `(tenant >= {tenant:String}
  AND (tenant > {tenant:String} OR user_id > {userId:String}))`;

/** Of named learners: tenants and users stand alone as well, so that the index finds the places. */
export const isNamed = `tenant IN {tenants:Array(String)} AND user_id IN {users:Array(String)}
  AND has({names:Array(String)}, ${learnerNameSql})`;
export const namedLearners = (learners: readonly LearnerPlace[]) => ({
  tenants: [...new Set(learners.map(({ tenant }) => tenant))],
  users: [...new Set(learners.map(({ userId }) => userId))],
  names: learners.map(({ tenant, userId }) => learnerName(tenant, userId)),
});

const snapshotColumns = ['tenant', 'user_id', 'learner_seq'];
const snapshotRow = rowColumns.map((name) => (snapshotColumns.includes(name) ? name : `NULL AS ${name}`));

/**
 * `LearnerRows`: a snapshot stands where the rows stood that were dropped for their age. Each table is read in its order,
 * and no further than the limit.
 */
const selectLearners = (condition: string, limit = ''): string => {
  const ofLearners = `WHERE ${condition} ORDER BY tenant, user_id, learner_seq ${limit}`;
  return `SELECT * FROM (
  SELECT ${rowColumns.join(', ')}, '' AS state FROM attempts ${ofLearners}
  UNION ALL
  SELECT ${snapshotRow.join(', ')}, state FROM ${learnerSnapshots.name} ${ofLearners}
) ORDER BY tenant, user_id, learner_seq, state ${limit} FORMAT TabSeparated`;
};

/** @throws Error of the client, or for an answer that ends in the middle of a row */
async function read(client: ClickHouseClient, query: string, query_params: object): Promise<Buffer> {
  const { stream } = await client.exec({
    query,
    query_params: { ...query_params },
    clickhouse_settings: { date_time_output_format: 'unix_timestamp' },
  });
  const bytes = await buffer(stream);
  if (bytes.length > 0 && bytes.at(-1) !== lineFeed)
    throw new Error('ClickHouse sent a page that ends in the middle of a row');
  return bytes;
}

/** Rows of named learners. */
export const readLearners = (
  client: ClickHouseClient,
  learners: readonly LearnerPlace[],
): Promise<LearnerRows> => read(client, selectLearners(isNamed), namedLearners(learners));

/** The learners of some partitions after one; null where there are none. */
export async function readAttemptPage(
  client: ClickHouseClient,
  partitions: readonly number[],
  after: LearnerPlace | null,
): Promise<AttemptPage | null> {
  const condition = `partition_id IN {partitions:Array(UInt16)}${after === null ? '' : ` AND ${afterLearner}`}`;
  for (let rows = pageRows; ; rows *= growth) {
    const query = selectLearners(condition, 'LIMIT {rows:UInt32}');
    const bytes = await read(client, query, { partitions, rows, ...after });
    if (bytes.length === 0) return null;
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
  return { tenant, userId: unescapeText(userId) };
}
