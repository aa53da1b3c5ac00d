import type { ClickHouseClient } from '@clickhouse/client';
import { decodeModel, decodeReport, type ModelChangeRecord } from '../../contracts/models/stored-model.js';
import { formatSqlTime, selectNumber, selectRows } from '../clickhouse/client.js';
import { insertObjects, insertUntilStored } from '../clickhouse/insert-rows.js';
import { modelVersions, skillParameters } from '../schema/model-tables.js';

export type ModelHistory = ReturnType<typeof createModelHistory>;

export const createModelHistory = (client: ClickHouseClient) => ({
  fetchLastChanges: async (): Promise<ReadonlyMap<string, number>> => {
    const query = 'SELECT tenant, max(change) AS change FROM model_versions GROUP BY tenant';
    const rows = await selectRows<{ tenant: string; change: number }>(client, query);
    return new Map(rows.map(({ tenant, change }) => [tenant, change]));
  },
  /** Idempotent. */
  recordChange: async (change: ModelChangeRecord): Promise<void> => {
    // Insert the change last: its row proves that all skills are stored.
    if (change.action === 'fit')
      await insertOnce(client, skillParameters.name, 'version', change, buildSkillRows(change));
    const { basedOn, publishedAt, ...same } = change;
    const row = { ...same, based_on: basedOn, published_at: formatSqlTime(publishedAt) };
    await insertOnce(client, modelVersions.name, 'change', change, [row]);
  },
});

async function insertOnce(
  client: ClickHouseClient,
  table: string,
  column: 'change' | 'version',
  change: ModelChangeRecord,
  values: object[],
): Promise<void> {
  const { tenant, [column]: value } = change;
  const query = `SELECT toUInt32(count()) AS n FROM ${table} WHERE tenant = {tenant:String} AND ${column} = {value:UInt32}`;
  if (values.length === 0) return;
  const isMissing = async () => (await selectNumber(client, query, { params: { tenant, value } })) === 0;
  await insertUntilStored(table, isMissing, (token) =>
    insertObjects(client, table, values, {
      // Numbers restart when a tenant's models are removed, so the token needs the time.
      insert_deduplication_token: `${tenant}:${value}:${change.publishedAt}:${token}`,
    }),
  );
}

function buildSkillRows({ tenant, version, model, report }: ModelChangeRecord): object[] {
  if (model === '') return [];
  const reports = new Map(decodeReport(report).skills.map((skill) => [skill.skillId, skill]));
  return Array.from(decodeModel(model).skills, ([skillId, skill]) => {
    const skillReport = reports.get(skillId);
    return {
      tenant,
      version,
      skill_id: skillId,
      source: skill.source,
      parameters_version: skill.version,
      p_init: skill.parameters.pInit,
      p_learn: skill.parameters.pLearn,
      p_guess: skill.parameters.pGuess,
      p_slip: skill.parameters.pSlip,
      p_forget: skill.parameters.pForget,
      learners: skill.learners,
      answers: skill.answers,
      old_log_loss: skillReport?.oldLogLoss ?? null,
      new_log_loss: skillReport?.newLogLoss ?? null,
      published: skillReport?.published === true ? 1 : 0,
      fitted_at: skill.fittedAt === null ? null : formatSqlTime(Date.parse(skill.fittedAt)),
    };
  });
}
