import type { ClickHouseClient } from '@clickhouse/client';
import { type LearnerId, learnerName, learnerNameSql } from '../../contracts/learners/learner-name.js';
import type { ModelChange, ModelChangeRecord } from '../../contracts/models/stored-model.js';
import type { OutboxId } from '../../contracts/outbox/outbox-ids.js';
import type {
  AnsweredSkill,
  CatalogueRecord,
  DailyAnswers,
  GoalRecord,
  GroupRecord,
  ItemCountRecord,
  MembershipRecord,
  ProfileRecord,
  RetractedEvent,
} from '../../contracts/rebuild/rebuild-tasks.js';
import type { WebhookRecord } from '../../contracts/webhooks/webhooks.js';
import { minRegisteredLearners } from '../../domain/base/score-constants.js';
import { runStatement, selectNumber, selectRows } from '../clickhouse/client.js';
import {
  countedCondition,
  learnerSnapshots,
  replacedAttempts,
  skillAnswers,
  storedColumnNames,
} from '../schema/attempt-tables.js';
import { selectLastChanges } from '../schema/current-views.js';
import { retainedCondition } from '../schema/rollups.js';
import { createFactsHistory } from './facts-history.js';
import {
  afterLearnerCondition,
  buildNameParams,
  namedLearnersCondition,
  readAttemptPages,
  readLearners,
} from './learner-rows.js';
import { fetchArchivedMonth, hasStoredState } from './stored-state.js';

/** Each page reads all answers of the tenant. */
const skillsPerPage = 10_000;

const buildSkillsQuery = (isFirstPage: boolean): string => {
  const selectUsers = (table: string): string => `SELECT toString(skill_id) AS skill, user_id FROM ${table}
  WHERE tenant = {tenant:String}${isFirstPage ? '' : ' AND skill_id > {skillId:String}'}`;
  return `SELECT skill AS skillId, groupUniqArray(${minRegisteredLearners})(user_id) AS userIds
FROM (${selectUsers(skillAnswers.name)} UNION ALL ${selectUsers('archived_learner_skill')})
GROUP BY skill ORDER BY skill LIMIT ${skillsPerPage}`;
};

const learnersPerPage = 20_000;

/** The last change of each learner. @param columns expressions by field of the result */
const buildLastChangesQuery =
  (table: string, columns: Readonly<Record<string, string>>) =>
  (isFirstPage: boolean): string => {
    const fields = Object.keys(columns).map((name, i) => `last.${i + 1} AS ${name}`);
    const condition = isFirstPage ? '' : `WHERE ${afterLearnerCondition}`;
    return `SELECT tenant, user_id AS userId, ${fields.join(', ')}, toFloat64(toUnixTimestamp64Milli(last_at)) AS updatedAt
FROM ${selectLastChanges(table, 'tenant, user_id', Object.values(columns).join(', '), condition)}
ORDER BY tenant, user_id LIMIT ${learnersPerPage}`;
  };

const buildGoalsQuery = buildLastChangesQuery('goal_changes', {
  targetScore: 'target_score',
  targetDate: 'toString(target_date)',
});
const buildProfilesQuery = buildLastChangesQuery('learner_profile_changes', {
  displayName: 'display_name',
  attributes: 'attributes',
});

const buildMembershipsQuery = (
  isFirstPage: boolean,
): string => `SELECT tenant, user_id AS userId, group_id AS groupId,
  toFloat64(toUnixTimestamp64Milli(joined_at)) AS joinedAt
FROM group_members WHERE left_at IS NULL ${isFirstPage ? '' : `AND ${afterLearnerCondition}`}
ORDER BY tenant, user_id LIMIT ${learnersPerPage} WITH TIES`;

const selectGroups = `SELECT tenant, group_id AS groupId, name, kind, nullIf(parent_group_id, '') AS parentGroupId,
  toFloat64(toUnixTimestamp64Milli(created_at)) AS createdAt,
  toFloat64(toUnixTimestamp64Milli(updated_at)) AS updatedAt
FROM groups ORDER BY tenant, group_id`;

const buildRetractedQuery = (
  isFirstPage: boolean,
): string => `SELECT tenant, user_id AS userId, event_id AS eventId,
  first_answer AS firstAnswer
FROM taken_back FINAL
WHERE first_answer != '' AND received_at >= toDateTime64({fromSecond:UInt32}, 3, 'UTC')
  ${isFirstPage ? '' : `AND ${afterLearnerCondition}`}
ORDER BY tenant, user_id LIMIT ${learnersPerPage} WITH TIES`;

const selectCatalogue = `SELECT tenant, skill_id AS skillId, revision,
  toFloat64(toUnixTimestamp64Milli(updated_at)) AS updatedAt, name, nullIf(toString(section), '') AS section, weight,
  p_init AS pInit, p_learn AS pLearn, p_guess AS pGuess, p_slip AS pSlip, p_forget AS pForget
FROM skill_catalogue ORDER BY tenant, skill_id`;

const selectWebhooks = `SELECT tenant, webhook_id AS id, url, splitByChar(' ', event_types) AS eventTypes, description,
  nullIf(toString(disabled_reason), '') AS disabledReason, toFloat64(toUnixTimestamp64Milli(created_at)) AS createdAt,
  toFloat64(toUnixTimestamp64Milli(updated_at)) AS updatedAt
FROM webhooks FINAL WHERE url != '' ORDER BY tenant, webhook_id`;

interface CatalogueRow extends Omit<CatalogueRecord, 'parameters'> {
  readonly pInit: number | null;
  readonly pLearn: number;
  readonly pGuess: number;
  readonly pSlip: number;
  readonly pForget: number;
}

const answersPerPart = 5_000_000;

/**
 * Uses a learner's first answer on an item per day. `expected` ignores the item's known difficulty. The
 * bounds of p keep its log-odds finite.
 */
const selectItems = `SELECT item_id AS itemId, toFloat64(count()) AS answers, toFloat64(sum(first.1)) AS right,
  sum(1 / (1 + exp(first.3 - log(p / (1 - p))))) AS expected
FROM (
  SELECT item_id, argMin(tuple(is_correct, p_correct, item_difficulty), learner_seq) AS first,
    least(greatest(first.2, 1e-9), 1 - 1e-9) AS p
  FROM attempts
  WHERE tenant = {tenant:String} AND item_id != '' AND cityHash64(item_id) % {parts:UInt32} = {part:UInt32}
  GROUP BY user_id, item_id, local_date
) GROUP BY item_id ORDER BY answers DESC LIMIT {most:UInt32}`;

const unionTables = (query: (table: string) => string, union = 'UNION ALL'): string =>
  ['attempts', learnerSnapshots.name].map(query).join(` ${union} `);

const selectSample = unionTables(
  (table) => `SELECT tenant, user_id AS userId, partition_id AS partition FROM ${table} LIMIT 1000`,
);

const selectExisting = unionTables(
  (table) => `SELECT DISTINCT ${learnerNameSql} AS name FROM ${table} WHERE ${namedLearnersCondition}`,
  'UNION DISTINCT',
);

const selectLastId = `SELECT toFloat64(outbox_ms) AS ms, toFloat64(outbox_seq) AS seq FROM attempts
WHERE partition_id = {partition:UInt16} ORDER BY outbox_ms DESC, outbox_seq DESC LIMIT 1`;

const selectTenants = `SELECT toString(tenant) AS tenant FROM attempts
UNION DISTINCT SELECT toString(tenant) AS tenant FROM archived_learner_skill`;

const selectModelChanges = `SELECT tenant, change, version, based_on AS basedOn, action,
  toFloat64(toUnixTimestamp64Milli(published_at)) AS publishedAt
FROM model_versions ORDER BY tenant, change DESC LIMIT 1 BY tenant, change`;

const selectModelTexts = `SELECT model, report FROM model_versions
WHERE tenant = {tenant:String} AND version = {version:UInt32} AND model != '' LIMIT 1`;

const selectNewestVersions = `SELECT tenant, max(version) AS newest FROM (
  SELECT toString(tenant) AS tenant, version FROM model_versions
  UNION ALL SELECT toString(tenant) AS tenant, version FROM skill_parameters
) GROUP BY tenant`;

const partitionCondition = 'partition_id IN {partitions:Array(UInt16)}';

const selectDays = `SELECT partition_id AS partition, toString(tenant) AS tenant,
  toUInt32(intDiv(toUnixTimestamp(received_at), 86400)) AS day, toFloat64(count()) AS answers
FROM attempts WHERE ${partitionCondition} AND ${countedCondition} GROUP BY partition, tenant, day`;

/**
 * Answers whose rewritten rows were lost with Redis. After a retraction, numbers of later answers are lower: the copy of
 * the last one is no missing answer.
 */
const insertReplaced = `INSERT INTO attempts (${storedColumnNames}) SELECT ${storedColumnNames}
FROM ${replacedAttempts.name} FINAL WHERE ${partitionCondition} AND ${retainedCondition}
  AND (tenant, user_id, learner_seq) NOT IN (SELECT tenant, user_id, learner_seq FROM attempts
    WHERE (tenant, user_id) IN (SELECT tenant, user_id FROM ${replacedAttempts.name}))
  AND (tenant, user_id) NOT IN (SELECT r.tenant, r.user_id FROM ${replacedAttempts.name} AS r
    JOIN taken_back AS t ON t.tenant = r.tenant AND t.user_id = r.user_id WHERE t.taken_back_at >= r.replaced_at)
SETTINGS insert_deduplicate = 0`;

export type RebuildSource = ReturnType<typeof createRebuildSource>;

export function createRebuildSource(client: ClickHouseClient, clickhouseUrl: string, maxItems: number) {
  const { fetchDeployment, fetchKeys, fetchMappings, fetchTimeZones } = createFactsHistory(
    client,
    clickhouseUrl,
  );
  const select = <Row>(query: string, params: object = {}) => selectRows<Row>(client, query, { params });
  const first = async <Row>(query: string, params: object) => (await select<Row>(query, params))[0] ?? null;
  const count = (condition: string, params: object): Promise<number> =>
    selectNumber(client, `SELECT toFloat64(count()) AS answers FROM attempts WHERE ${condition}`, { params });

  /** @param query gets the fields of the previous page's last row as parameters */
  async function* readPages<Row extends object>(
    size: number,
    query: (isFirst: boolean) => string,
    params: object,
  ): AsyncGenerator<Row[]> {
    for (let last: Row | undefined, isLast = false; !isLast; ) {
      const rows: Row[] = await select<Row>(query(last === undefined), { ...params, ...last });
      yield rows;
      isLast = rows.length < size;
      last = rows.at(-1);
    }
  }

  return {
    deployment: fetchDeployment,
    keys: fetchKeys,
    mappings: fetchMappings,
    timeZones: fetchTimeZones,
    hasStoredState: () => hasStoredState(client),
    /** Only for partitions that Redis lost. */
    restoreReplaced: (partitions: readonly number[]) =>
      runStatement(client, insertReplaced, { params: { partitions } }),
    sampleLearners: () => select<LearnerId & { readonly partition: number }>(selectSample),
    countAnswers: (partitions: readonly number[]) => count(partitionCondition, { partitions }),
    pages: (partitions: readonly number[], after: LearnerId | null) =>
      readAttemptPages(client, partitions, after),
    readLearners: (learners: readonly LearnerId[]) =>
      readLearners(client, namedLearnersCondition, buildNameParams(learners)),
    /** Learners without rows and snapshots. */
    findUnstored: async (learners: readonly LearnerId[]): Promise<LearnerId[]> => {
      const found = await select<{ name: string }>(selectExisting, buildNameParams(learners));
      const known = new Set(found.map(({ name }) => name));
      return learners.filter(({ tenant, userId }) => !known.has(learnerName(tenant, userId)));
    },
    fetchArchivedMonth: () => fetchArchivedMonth(client),
    findLastId: (partition: number) => first<OutboxId>(selectLastId, { partition }),
    listTenants: async () => (await select<{ tenant: string }>(selectTenants)).map(({ tenant }) => tenant),
    readAnsweredSkills: (tenant: string) =>
      readPages<AnsweredSkill>(skillsPerPage, buildSkillsQuery, { tenant }),
    /** Includes deleted goals, with the time of the deletion. */
    readGoals: () => readPages<GoalRecord>(learnersPerPage, buildGoalsQuery, {}),
    /** @param fromSecond Unix seconds of arrival */
    readRetracted: (fromSecond: number) =>
      readPages<RetractedEvent>(learnersPerPage, buildRetractedQuery, { fromSecond }),
    /** Includes removed profiles, with the time of the removal. */
    readProfiles: () => readPages<ProfileRecord>(learnersPerPage, buildProfilesQuery, {}),
    /** Of current members. */
    readMemberships: () => readPages<MembershipRecord>(learnersPerPage, buildMembershipsQuery, {}),
    fetchGroups: () => select<GroupRecord>(selectGroups),
    fetchCatalogue: async (): Promise<CatalogueRecord[]> =>
      (await select<CatalogueRow>(selectCatalogue)).map(
        ({ pInit, pLearn, pGuess, pSlip, pForget, ...entry }) => ({
          ...entry,
          parameters: pInit === null ? null : { pInit, pLearn, pGuess, pSlip, pForget },
        }),
      ),
    fetchWebhooks: () => select<WebhookRecord>(selectWebhooks),
    fetchModelChanges: () => select<ModelChange>(selectModelChanges),
    /** Empty texts: the version was not recorded. */
    fetchModelTexts: async (change: ModelChange): Promise<ModelChangeRecord> => {
      const { tenant, version } = change;
      const texts = await first<{ model: string; report: string }>(selectModelTexts, { tenant, version });
      return { ...change, model: '', report: '', ...texts };
    },
    fetchNewestVersions: async (): Promise<Map<string, number>> => {
      const rows = await select<{ tenant: string; newest: number }>(selectNewestVersions);
      return new Map(rows.map(({ tenant, newest }) => [tenant, newest]));
    },
    /** Above the limit, yields the items with the most answers. */
    readItems: async function* (tenant: string): AsyncGenerator<ItemCountRecord[]> {
      const answers = await count('tenant = {tenant:String}', { tenant });
      const parts = Math.max(1, Math.ceil(answers / answersPerPart));
      const most = Math.floor(maxItems / parts);
      for (let part = 0; part < parts; part++)
        yield await select<ItemCountRecord>(selectItems, { tenant, parts, part, most });
    },
    fetchDailyAnswers: (partitions: readonly number[]) => select<DailyAnswers>(selectDays, { partitions }),
  };
}
