/** Takes rows of a learner out of ClickHouse, for the drain that holds their partition. */
import type { ClickHouseClient } from '@clickhouse/client';
import type { CorrectedRows, CorrectionWarehouse, TakenId } from '../services/correction-ports.js';
import { archivedDays, archivedLearnerSkill, isArchived, keptRows } from './archive.js';
import { attempts, countedRows } from './attempts.js';
import { selectRows } from './client.js';
import { type Cluster, deleteFrom } from './cluster.js';
import { countEnded, endedHistory, withValues } from './ended-history.js';
import { learnerSnapshots } from './learner-snapshots.js';
import { learnerTables } from './learner-tables.js';
import { complete, type RollupPart, repairPart } from './repair.js';
import { learnerSkill, skillDays } from './rollups.js';
import { quote, type Table } from './table.js';

export function createCorrectionWarehouse(
  client: ClickHouseClient,
  cluster: Cluster = null,
): CorrectionWarehouse {
  return {
    count: async (rows, signal) => {
      await complete(client, attempts.name, cluster, signal);
      const days = await selectRows<{ day: number; answers: number }>(
        client,
        `SELECT toInt32(intDiv(toUnixTimestamp64Milli(received_at), 86400000)) AS day, toUInt32(count()) AS answers
FROM attempts WHERE ${conditionOf(rows)} AND ${countedRows} GROUP BY day`,
        signal,
      );
      return { ...removalOf(days), before: await countEnded(client, endedHistory(rows), signal) };
    },
    eventIds: (rows, since, signal) =>
      selectRows<TakenId>(
        client,
        `SELECT event_id AS eventId, toUInt32(intDiv(toUnixTimestamp64Milli(received_at), 1000)) AS second
FROM attempts WHERE ${conditionOf(rows)} AND event_id != '' AND received_at >= fromUnixTimestamp64Milli(${since})`,
        signal,
      ),
    remove: async (rows, signal) => {
      const cancel = signal && { abort_signal: signal };
      await complete(client, attempts.name, cluster, signal);
      await client.command({
        query: `${deleteFrom(attempts.name, cluster)} WHERE ${conditionOf(rows)}`,
        ...cancel,
      });
      if (rows.fromSeq === 0) await removeArchived(client, cluster, rows, signal);
      // The learner's own sums last: they tell which days of the skills are touched, also to who goes on after a kill.
      await repairPart(client, skillDays, touchedDays(rows), cluster, signal);
      await repairPart(client, learnerSkill, wholeLearner(rows), cluster, signal);
    },
  };
}

const removalOf = (days: readonly { readonly day: number; readonly answers: number }[]) => ({
  answers: Object.fromEntries(days.map((one) => [`${one.day}`, one.answers])),
});

const learnerOf = ({ tenant, userId }: CorrectedRows): string =>
  `tenant = ${quote(tenant)} AND user_id = ${quote(userId)}`;

function conditionOf(rows: CorrectedRows): string {
  const { partition, belowMs, belowSeq, fromSeq } = rows;
  const before = `(partition_id != ${partition} OR (outbox_ms, outbox_seq) < (${belowMs}, ${belowSeq}))`;
  return `${learnerOf(rows)} AND learner_seq >= ${fromSeq} AND ${before}`;
}

/** Sums and snapshots of answers whose rows were dropped for their age. */
async function removeArchived(
  client: ClickHouseClient,
  cluster: Cluster,
  rows: CorrectedRows,
  signal: AbortSignal | undefined,
): Promise<void> {
  for (const { table, ended } of learnerTables.filter(({ table }) => archive.includes(table))) {
    const query = `${deleteFrom(table.name, cluster)} WHERE ${withValues(ended, endedHistory(rows))}`;
    await client.command({ query, ...(signal && { abort_signal: signal }) });
  }
}

const archive: readonly Table[] = [archivedLearnerSkill, learnerSnapshots];

const wholeLearner = (rows: CorrectedRows): RollupPart => {
  const learner = learnerOf(rows);
  const { tenant, userId } = rows;
  const inArchive = `a.tenant = ${quote(tenant)} AND a.user_id = ${quote(userId)}`;
  return { inAttempts: learner, inArchive, inRollup: learner };
};

/** Days of skills, in the learner's partition, on which the learner's own sums are not those of the rows. */
function touchedDays(rows: CorrectedRows): RollupPart {
  const learner = wholeLearner(rows);
  const days = `(SELECT skill_id, day FROM (
  SELECT skill_id, toDate(occurred_at) AS day, toInt64(1) AS n FROM attempts WHERE ${keptRows} AND ${learner.inAttempts}
  UNION ALL SELECT skill_id, day, toInt64(a.attempts) AS n FROM ${archivedDays} WHERE ${isArchived} AND ${learner.inArchive}
  UNION ALL SELECT skill_id, day, -toInt64(r.attempts) AS n FROM ${learnerSkill.table.name} AS r WHERE ${learner.inRollup}
) GROUP BY skill_id, day HAVING sum(n) != 0)`;
  const tenant = quote(rows.tenant);
  const place = `tenant = ${tenant} AND partition_id = ${rows.partition}`;
  return {
    inAttempts: `${place} AND (skill_id, toDate(occurred_at)) IN ${days}`,
    inArchive: `a.tenant = ${tenant} AND a.partition_id = ${rows.partition} AND (a.skill_id, a.day) IN ${days}`,
    inRollup: `${place} AND (skill_id, day) IN ${days}`,
  };
}
