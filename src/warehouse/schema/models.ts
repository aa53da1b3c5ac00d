/** The published models in ClickHouse, for analysts and for a rebuild: written after Redis, never read to serve. */
import type { ClickHouseClient } from '@clickhouse/client';
import { decodeModel, decodeReport, type RecordedChange } from '../../contracts/model.js';
import { selectRows, sqlTime } from '../clickhouse/client.js';
import { type Column, deduplicationWindow, type Table } from '../clickhouse/table.js';

const settings = { ...deduplicationWindow, fsync_after_insert: 1, fsync_part_directory: 1 };

const column = (name: string, type: string, comment: string): Column => ({ name, type, comment });

const tenant = column('tenant', 'LowCardinality(String)', 'Owner of the learners and skills');

export const modelVersions: Table = {
  name: 'model_versions',
  comment: "One row for every time that a version of a tenant's model came into force",
  engine: 'MergeTree',
  columns: [
    tenant,
    column('change', 'UInt32', 'Number of the change within the tenant, from 1'),
    column('version', 'UInt32', 'Version that came into force; 0: nothing fitted, the defaults'),
    column('based_on', 'UInt32', 'Version that was in force before'),
    column(
      'action',
      'LowCardinality(String)',
      'fit: a new version; rollback: back to an earlier one, by hand',
    ),
    column('published_at', "DateTime64(3, 'UTC')", 'When it came into force'),
    {
      name: 'model',
      type: 'String',
      codec: 'ZSTD(3)',
      comment: 'The model as JSON; empty for version 0',
    },
    {
      name: 'report',
      type: 'String',
      codec: 'ZSTD(3)',
      comment: 'The fit as JSON: its data, its figures, what was held back and why; empty for version 0',
    },
  ],
  orderBy: '(tenant, change)',
  shardBy: 'cityHash64(tenant)',
  settings,
};

const probability = (name: string, comment: string): Column => column(name, 'Float64', `${comment}, 0 to 1`);

export const skillParameters: Table = {
  name: 'skill_parameters',
  comment: "One row for every skill of every fitted version of a tenant's model",
  engine: 'MergeTree',
  columns: [
    tenant,
    column('version', 'UInt32', 'Version of the model'),
    column('skill_id', 'LowCardinality(String)', 'Skill'),
    column('source', 'LowCardinality(String)', 'default, prior (mean of fitted skills), fitted or manual'),
    column(
      'parameters_version',
      'UInt32',
      'Version that brought the parameters: an earlier one where this fit was not better; 0: defaults',
    ),
    probability('p_init', 'Mastery before the first answer'),
    probability('p_learn', 'Probability of learning at one answer'),
    probability('p_guess', 'Probability of a correct answer without mastery'),
    probability('p_slip', 'Probability of a wrong answer with mastery'),
    column('learners', 'UInt32', 'Learners that the fit of the skill rested on'),
    column('answers', 'UInt32', 'Answers that the fit of the skill rested on'),
    column(
      'old_log_loss',
      'Nullable(Float64)',
      'Log loss of BKT with the parameters in force before, on held-out learners; NULL: not measured',
    ),
    column(
      'new_log_loss',
      'Nullable(Float64)',
      'Log loss of BKT with the fitted parameters, on the same answers; NULL: not measured',
    ),
    column('published', 'UInt8', '1 when the fit of this version brought the parameters, else 0'),
    column('fitted_at', "Nullable(DateTime64(3, 'UTC'))", 'When the parameters were fitted; NULL: never'),
  ],
  orderBy: '(tenant, version, skill_id)',
  shardBy: 'cityHash64(tenant)',
  settings,
};

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
    const { tenant, version } = change;
    // The change comes last: where it is, everything is.
    if (change.action === 'fit')
      await insertOnce(client, skillParameters, 'version', tenant, version, skillRows(change));
    await insertOnce(client, modelVersions, 'change', tenant, change.change, [changeRow(change)]);
  },
});

/** As one block, which is there as a whole or not at all. */
async function insertOnce(
  client: ClickHouseClient,
  { name }: Table,
  column: string,
  tenant: string,
  value: number,
  rows: object[],
): Promise<void> {
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

const changeRow = ({ basedOn, publishedAt, ...change }: RecordedChange) => ({
  ...change,
  based_on: basedOn,
  published_at: sqlTime(publishedAt),
});

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
