/** Takes rows of learners out of ClickHouse, for the drain that holds their partitions: many learners in one statement. */
import type { ClickHouseClient } from '@clickhouse/client';
import { learnerName, learnerNameSql } from '../../contracts/learner-name.js';
import type { CorrectedRows, CorrectionWarehouse } from '../../services/corrections/correction-ports.js';
import { selectRows } from '../clickhouse/client.js';
import { type Cluster, deleteFrom } from '../clickhouse/cluster.js';
import { quote, type Table } from '../clickhouse/table.js';
import { complete, type RollupPart, repairPart } from '../ingest/repair.js';
import { countEnded, endedHistory, isOneOf, ofEach } from '../reads/ended-history.js';
import {
  archivedDays,
  archivedLearnerSkill,
  isArchived,
  keptRows,
  learnerSnapshots,
} from '../schema/archive.js';
import { attempts, countedRows } from '../schema/attempts.js';
import { before, learnerTables, ofLearner } from '../schema/learner-tables.js';
import { learnerSkill, skillDays } from '../schema/rollups.js';

export function createCorrectionWarehouse(
  client: ClickHouseClient,
  cluster: Cluster = null,
): CorrectionWarehouse {
  return {
    count: async (rows, signal) => {
      await complete(client, attempts.name, cluster, signal);
      const answers = await countAnswers(client, rows, signal);
      const places = await countEnded(client, rows, signal);
      return rows.map((_, i) => ({ answers: answers[i] ?? {}, before: places[i] ?? {} }));
    },
    remove: async (rows, signal) => {
      const cancel = signal && { abort_signal: signal };
      await complete(client, attempts.name, cluster, signal);
      await client.command({
        query: `${deleteFrom(attempts.name, cluster)} WHERE ${conditionOf(rows)}`,
        ...cancel,
      });
      await removeArchived(
        client,
        cluster,
        rows.filter(({ fromSeq }) => fromSeq === 0),
        signal,
      );
      // The learners' own sums last: they tell which days of the skills are touched, also to who goes on after a kill.
      await repairPart(client, skillDays, touchedDays(rows), cluster, signal);
      await repairPart(client, learnerSkill, wholeLearners(rows), cluster, signal);
    },
  };
}

/** @returns answers by day of arrival, of each learner in their order */
async function countAnswers(
  client: ClickHouseClient,
  rows: readonly CorrectedRows[],
  signal: AbortSignal | undefined,
): Promise<Record<string, number>[]> {
  const found = await selectRows<{ name: string; day: number; answers: number }>(
    client,
    `SELECT ${learnerNameSql} AS name,
  toInt32(intDiv(toUnixTimestamp64Milli(received_at), 86400000)) AS day, toUInt32(count()) AS answers
FROM attempts WHERE ${conditionOf(rows)} AND ${countedRows} GROUP BY name, day`,
    signal,
  );
  const days = new Map(
    rows.map((one) => [learnerName(one.tenant, one.userId), {} as Record<string, number>]),
  );
  for (const { name, day, answers } of found) (days.get(name) as Record<string, number>)[day] = answers;
  return [...days.values()];
}

const historiesOf = (rows: readonly CorrectedRows[]) =>
  rows.map((one) => ({ ...endedHistory(one), from_seq: one.fromSeq }));

const conditionOf = (rows: readonly CorrectedRows[]): string =>
  ofEach(`${ofLearner} AND learner_seq >= {from_seq:UInt32} AND ${before}`, historiesOf(rows));

/** Sums and snapshots of answers whose rows were dropped for their age: seldom any, and a look costs less than a deletion. */
async function removeArchived(
  client: ClickHouseClient,
  cluster: Cluster,
  rows: readonly CorrectedRows[],
  signal: AbortSignal | undefined,
): Promise<void> {
  if (rows.length === 0) return;
  for (const { table, ended } of learnerTables.filter(({ table }) => archive.includes(table))) {
    const where = ofEach(ended, historiesOf(rows));
    const query = `${deleteFrom(table.name, cluster)} WHERE ${where}`;
    if ((await selectRows(client, `SELECT 1 FROM ${table.name} WHERE ${where} LIMIT 1`, signal)).length > 0)
      await client.command({ query, ...(signal && { abort_signal: signal }) });
  }
}

const archive: readonly Table[] = [archivedLearnerSkill, learnerSnapshots];

const wholeLearners = (rows: readonly CorrectedRows[]): RollupPart => {
  const histories = historiesOf(rows);
  const learners = isOneOf(histories);
  return {
    inAttempts: learners,
    inArchive: isOneOf(histories, 'a.'),
    inRollup: learners,
    onlyWhereWrong: false,
  };
};

/** Days of skills, in the learner's partition, on which a learner's own sums are not those of the rows. */
const touched = `(SELECT DISTINCT tenant, skill_id, day, {partition:UInt16} FROM (
  SELECT tenant, user_id, skill_id, toDate(occurred_at) AS day, toInt64(1) AS n FROM attempts
    WHERE ${keptRows} AND ${ofLearner}
  UNION ALL SELECT tenant, user_id, skill_id, day, toInt64(a.attempts) AS n FROM ${archivedDays}
    WHERE ${isArchived} AND ${ofLearner}
  UNION ALL SELECT tenant, user_id, skill_id, day, -toInt64(r.attempts) AS n FROM ${learnerSkill.table.name} AS r
    WHERE ${ofLearner}
) GROUP BY tenant, user_id, skill_id, day HAVING sum(n) != 0)`;

function touchedDays(rows: readonly CorrectedRows[]): RollupPart {
  const days = ofEach(touched, historiesOf(rows));
  const tenants = [...new Set(rows.map(({ tenant }) => quote(tenant)))].join();
  const partitions = [...new Set(rows.map(({ partition }) => partition))].join();
  const place = (alias: '' | 'a.') =>
    `${alias}tenant IN (${tenants}) AND ${alias}partition_id IN (${partitions})`;
  return {
    inAttempts: `${place('')} AND (tenant, skill_id, toDate(occurred_at), partition_id) IN ${days}`,
    inArchive: `${place('a.')} AND (a.tenant, a.skill_id, a.day, a.partition_id) IN ${days}`,
    inRollup: `${place('')} AND (tenant, skill_id, day, partition_id) IN ${days}`,
    onlyWhereWrong: true,
  };
}
