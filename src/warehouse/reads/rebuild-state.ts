/** What a rebuild reads beside the learners' own rows. */
import type { ClickHouseClient } from '@clickhouse/client';
import type { LearnerPlace } from '../../contracts/learner-name.js';
import type { ModelChange, RecordedChange } from '../../contracts/model.js';
import type {
  AnsweredSkill,
  CatalogueRecord,
  DayOfAnswers,
  GoalRecord,
  ItemRecord,
  RetractedId,
} from '../../contracts/rebuild-tasks.js';
import { learnersOfKnownSkill } from '../../domain/base/params.js';
import { selectRows } from '../clickhouse/client.js';
import { countedRows } from '../schema/attempts.js';
import { afterLearner } from './attempt-pages.js';

/** Skills of one query, which reads all answers of the tenant. */
const skillsTogether = 10_000;

const selectSkills = `SELECT skill AS skillId, groupUniqArray(${learnersOfKnownSkill})(user_id) AS userIds FROM (
  ${['attempts', 'archived_learner_skill']
    .map(
      (table) => `SELECT toString(skill_id) AS skill, user_id FROM ${table}
  WHERE tenant = {tenant:String} AND skill_id > {after:String}`,
    )
    .join('\n  UNION ALL ')}
) GROUP BY skill ORDER BY skill LIMIT ${skillsTogether}`;

const goalsTogether = 20_000;

const selectGoals = (
  after: LearnerPlace | null,
): string => `SELECT tenant, user_id AS userId, last.1 AS targetScore,
  last.2 AS targetDate, toFloat64(toUnixTimestamp64Milli(at)) AS updatedAt
FROM (
  SELECT tenant, user_id, argMax(tuple(target_score, toString(target_date)), updated_at) AS last, max(updated_at) AS at
  FROM goal_changes ${after === null ? '' : `WHERE ${afterLearner}`} GROUP BY tenant, user_id
) ORDER BY tenant, user_id LIMIT ${goalsTogether}`;

interface CatalogueRow extends Omit<CatalogueRecord, 'section' | 'parameters'> {
  section: 'math' | 'rw' | '';
  p_init: number | null;
  p_learn: number;
  p_guess: number;
  p_slip: number;
}

/** Answers whose items are counted in one query, about. */
const answersTogether = 5_000_000;

/**
 * A learner's first answer on an item of a day counts, expected without what was known of the item. The log-odds of a
 * served probability are finite, but a double may have lost that.
 */
const selectItems = `SELECT item_id AS itemId, toFloat64(count()) AS answers, toFloat64(sum(first.1)) AS right,
  sum(1 / (1 + exp(first.3 - log(p / (1 - p))))) AS expected
FROM (
  SELECT item_id, argMin(tuple(is_correct, p_correct, item_difficulty), learner_seq) AS first,
    least(greatest(first.2, 1e-9), 1 - 1e-9) AS p
  FROM attempts
  WHERE tenant = {tenant:String} AND item_id != '' AND cityHash64(item_id) % {parts:UInt32} = {part:UInt32}
  GROUP BY user_id, item_id, toDate(occurred_at)
) GROUP BY item_id ORDER BY answers DESC LIMIT {most:UInt32}`;

const retractedTogether = 20_000;

const selectRetracted = (
  after: LearnerPlace | null,
): string => `SELECT tenant, user_id AS userId, event_id AS eventId,
  first_answer AS firstAnswer
FROM taken_back FINAL
WHERE first_answer != '' AND received_at >= toDateTime64({fromSecond:UInt32}, 3, 'UTC')
  ${after === null ? '' : `AND ${afterLearner}`}
ORDER BY tenant, user_id LIMIT ${retractedTogether} WITH TIES`;

/** @param maxItems most items of one tenant */
export function createStateReads(client: ClickHouseClient, maxItems: number) {
  const select = <Row>(query: string, params?: Record<string, unknown>): Promise<Row[]> =>
    selectRows<Row>(client, query, undefined, params);

  /** @param query rows in the order of their learners, behind the given one; whole learners in each page */
  async function* pagesByLearner<Row extends LearnerPlace>(
    query: (after: LearnerPlace | null) => string,
    params: object,
  ): AsyncGenerator<Row[]> {
    for (let after: LearnerPlace | null = null; ; ) {
      const rows: Row[] = await select<Row>(query(after), { ...params, ...after });
      const last = rows.at(-1);
      if (last === undefined) return;
      yield rows;
      after = { tenant: last.tenant, userId: last.userId };
    }
  }

  return {
    /** Those with answers. */
    tenants: async (): Promise<string[]> => {
      const rows = await select<{ tenant: string }>(
        `SELECT toString(tenant) AS tenant FROM attempts
         UNION DISTINCT SELECT toString(tenant) AS tenant FROM archived_learner_skill`,
      );
      return rows.map(({ tenant }) => tenant);
    },
    answeredSkills: async function* (tenant: string): AsyncGenerator<AnsweredSkill[]> {
      for (let after: string | undefined = ''; after !== undefined; ) {
        const skills: AnsweredSkill[] = await select(selectSkills, { tenant, after });
        yield skills;
        after = skills.length < skillsTogether ? undefined : skills.at(-1)?.skillId;
      }
    },
    /** Also of learners whose goal was deleted: the time of that is kept. */
    goals: () => pagesByLearner<GoalRecord>(selectGoals, {}),
    catalogue: async (): Promise<CatalogueRecord[]> => {
      const rows = await select<CatalogueRow>(
        `SELECT tenant, skill_id AS skillId, revision, toFloat64(toUnixTimestamp64Milli(updated_at)) AS updatedAt, name,
          toString(section) AS section, weight, p_init, p_learn, p_guess, p_slip
         FROM skill_catalogue ORDER BY tenant, skill_id`,
      );
      return rows.map(({ section, p_init, p_learn, p_guess, p_slip, ...entry }) => ({
        ...entry,
        section: section === '' ? null : section,
        parameters:
          p_init === null ? null : { pInit: p_init, pLearn: p_learn, pGuess: p_guess, pSlip: p_slip },
      }));
    },
    /** Of all tenants, each one's newest first. */
    modelChanges: () =>
      select<ModelChange>(
        `SELECT tenant, change, version, based_on AS basedOn, action,
          toFloat64(toUnixTimestamp64Milli(published_at)) AS publishedAt
         FROM model_versions ORDER BY tenant, change DESC LIMIT 1 BY tenant, change`,
      ),
    /** Both texts are empty for a version that was not recorded. */
    modelTexts: async (change: ModelChange): Promise<RecordedChange> => {
      const { tenant, version } = change;
      const [texts] = await select<{ model: string; report: string }>(
        `SELECT model, report FROM model_versions
         WHERE tenant = {tenant:String} AND version = {version:UInt32} AND model != '' LIMIT 1`,
        { tenant, version },
      );
      return { ...change, model: texts?.model ?? '', report: texts?.report ?? '' };
    },
    newestVersions: async (): Promise<Map<string, number>> => {
      const rows = await select<{ tenant: string; newest: number }>(
        `SELECT tenant, max(version) AS newest FROM (
           SELECT toString(tenant) AS tenant, version FROM model_versions
           UNION ALL SELECT toString(tenant) AS tenant, version FROM skill_parameters
         ) GROUP BY tenant`,
      );
      return new Map(rows.map(({ tenant, newest }) => [tenant, newest]));
    },
    /** Of a tenant with more items those with the most answers. */
    items: async function* (tenant: string): AsyncGenerator<ItemRecord[]> {
      const counted = 'SELECT toFloat64(count()) AS answers FROM attempts WHERE tenant = {tenant:String}';
      const [found] = await select<{ answers: number }>(counted, { tenant });
      const parts = Math.max(1, Math.ceil((found?.answers ?? 0) / answersTogether));
      const most = Math.floor(maxItems / parts);
      for (let part = 0; part < parts; part++)
        yield await select<ItemRecord>(selectItems, { tenant, parts, part, most });
    },
    answersByDay: (partitions: readonly number[]) =>
      select<DayOfAnswers>(
        `SELECT partition_id AS partition, toString(tenant) AS tenant,
          toUInt32(intDiv(toUnixTimestamp(received_at), 86400)) AS day, toFloat64(count()) AS answers
         FROM attempts WHERE partition_id IN {partitions:Array(UInt16)} AND ${countedRows} GROUP BY partition, tenant, day`,
        { partitions },
      ),
    /** Event ids of retracted answers that arrived at this Unix second or later. */
    retracted: (fromSecond: number) => pagesByLearner<RetractedId>(selectRetracted, { fromSecond }),
  };
}
