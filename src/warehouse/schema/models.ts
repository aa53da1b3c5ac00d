/** The published models in ClickHouse, for analysts and for a rebuild: written after Redis, never read to serve. */
import type { ClickHouseClient } from '@clickhouse/client';
import { decodeModel, decodeReport, type RecordedChange } from '../../contracts/model.js';
import { selectRows, sqlTime } from '../clickhouse/client.js';
import { defineTable, rememberingTokens } from '../clickhouse/table.js';

const layout = { engine: 'MergeTree', shardBy: 'cityHash64(tenant)', settings: rememberingTokens };

export const modelVersions = defineTable(
  'model_versions',
  "One row for every time that a version of a tenant's model came into force",
  `
    tenant LowCardinality(String) -- Owner of the learners and skills
    change UInt32 -- Number of the change within the tenant, from 1
    version UInt32 -- Version that came into force; 0: nothing fitted, the defaults
    based_on UInt32 -- Version that was in force before
    action LowCardinality(String) -- fit: a new version; rollback: back to an earlier one, by hand
    published_at DateTime64(3, 'UTC') -- When it came into force
    model String CODEC(ZSTD(3)) -- The model as JSON; empty for version 0
    report String CODEC(ZSTD(3))
      -- The fit as JSON: its data, its figures, what was held back and why; empty for version 0
  `,
  { ...layout, orderBy: '(tenant, change)' },
);

export const skillParameters = defineTable(
  'skill_parameters',
  "One row for every skill of every fitted version of a tenant's model",
  `
    tenant LowCardinality(String) -- Owner of the learners and skills
    version UInt32 -- Version of the model
    skill_id LowCardinality(String) -- Skill
    source LowCardinality(String) -- default, prior (mean of fitted skills), fitted or manual
    parameters_version UInt32
      -- Version that brought the parameters: an earlier one where this fit was not better; 0: defaults
    p_init Float64 -- Mastery before the first answer, 0 to 1
    p_learn Float64 -- Probability of learning at one answer, 0 to 1
    p_guess Float64 -- Probability of a correct answer without mastery, 0 to 1
    p_slip Float64 -- Probability of a wrong answer with mastery, 0 to 1
    learners UInt32 -- Learners that the fit of the skill rested on
    answers UInt32 -- Answers that the fit of the skill rested on
    old_log_loss Nullable(Float64)
      -- Log loss of BKT with the parameters in force before, on held-out learners; NULL: not measured
    new_log_loss Nullable(Float64)
      -- Log loss of BKT with the fitted parameters, on the same answers; NULL: not measured
    published UInt8 -- 1 when the fit of this version brought the parameters, else 0
    fitted_at Nullable(DateTime64(3, 'UTC')) -- When the parameters were fitted; NULL: never
  `,
  { ...layout, orderBy: '(tenant, version, skill_id)' },
);

/** ClickHouse notes a token before it moves the part into place: who is killed in between needs another token. */
const maxTokens = 5;

/** The copy of the publications for analysts and rebuilds. */
export type ModelHistory = ReturnType<typeof createModelHistory>;

export const createModelHistory = (client: ClickHouseClient) => ({
  /** Number of the last change that is there, by tenant. */
  lastChanges: async (): Promise<ReadonlyMap<string, number>> => {
    const query = 'SELECT tenant, max(change) AS change FROM model_versions GROUP BY tenant';
    const rows = await selectRows<{ tenant: string; change: number }>(client, query);
    return new Map(rows.map(({ tenant, change }) => [tenant, change]));
  },
  /** Adds a change, and the parameters of a fitted version; doing it again adds nothing. */
  add: async (change: RecordedChange): Promise<void> => {
    // The change comes last: where it is, everything is.
    if (change.action === 'fit')
      await insertOnce(client, skillParameters.name, 'version', change, skillRows(change));
    const { basedOn, publishedAt, ...same } = change;
    const row = { ...same, based_on: basedOn, published_at: sqlTime(publishedAt) };
    await insertOnce(client, modelVersions.name, 'change', change, [row]);
  },
});

/** As one block, which is there as a whole or not at all. */
async function insertOnce(
  client: ClickHouseClient,
  name: string,
  column: 'change' | 'version',
  change: RecordedChange,
  rows: object[],
): Promise<void> {
  const { tenant, [column]: value } = change;
  const query = `SELECT toUInt32(count()) AS n FROM ${name} WHERE tenant = {tenant:String} AND ${column} = {value:UInt32}`;
  for (let token = 0; rows.length > 0; token++) {
    const [found] = await selectRows<{ n: number }>(client, query, undefined, { tenant, value });
    if (found !== undefined && found.n > 0) return;
    if (token === maxTokens) throw new Error(`${name} does not take its rows`);
    await client.insert({
      table: name,
      format: 'JSONEachRow',
      values: rows,
      clickhouse_settings: {
        async_insert: 0,
        wait_end_of_query: 1,
        insert_deduplication_token: `${tenant}:${value}:${token}`,
      },
    });
  }
}

/** None for a version that is no longer kept. */
function skillRows({ tenant, version, model, report }: RecordedChange): object[] {
  if (model === '') return [];
  const reports = new Map(decodeReport(report).skills.map((skill) => [skill.skillId, skill]));
  return Array.from(decodeModel(model).skills, ([skillId, skill]) => {
    const found = reports.get(skillId);
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
      learners: skill.learners,
      answers: skill.answers,
      old_log_loss: found?.oldLogLoss ?? null,
      new_log_loss: found?.newLogLoss ?? null,
      published: found?.published === true ? 1 : 0,
      fitted_at: skill.fittedAt === null ? null : sqlTime(Date.parse(skill.fittedAt)),
    };
  });
}
