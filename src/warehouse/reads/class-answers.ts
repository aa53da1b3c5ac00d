/** Sums of the answers of a class, in a period and in the period of the same length before. */
import type { Static } from 'typebox';
import type { HardItem } from '../../contracts/responses/classes.js';
import type { LatestAnswers } from '../../domain/classes/class-attention.js';
import type { ChangeSums, PeriodSums } from '../../domain/classes/class-change.js';
import { classConstants } from '../../domain/classes/class-constants.js';
import { quote } from '../clickhouse/ddl.js';
import { retainedCondition } from '../schema/rollups.js';
import type { TenantRead } from './tenant-read.js';

interface ClassMembers {
  readonly userIds: readonly string[];
}

export interface ClassPeriod extends ClassMembers {
  /** First local days of both periods, YYYY-MM-DD. */
  readonly since: string;
  readonly before: string;
}

/** More threads take more CPU for so few rows. */
const oneThread = 'SETTINGS max_threads = 1';

const idsPlace = '{userIds}';
const classCondition = `tenant = {tenant:String} AND user_id IN ${idsPlace}`;

/** @param further part of a column that counts under another skill */
function buildPeriodSums(keys: string, further = (_: string): string => ''): string {
  const sum = (column: string, sign: '>=' | '<') =>
    `toUInt32(sumIf(r.${column}${further(column)}, r.day ${sign} {since:Date}))`;
  return `SELECT ${keys}, ${sum('attempts', '>=')} AS answers, ${sum('correct', '>=')} AS correct,
  ${sum('attempts', '<')} AS earlierAnswers, ${sum('correct', '<')} AS earlierCorrect
FROM learner_sums AS r WHERE ${classCondition} AND kind = 'day' AND day >= {before:Date} GROUP BY ALL`;
}

const selectLearners = `${buildPeriodSums('user_id AS userId', (column) => ` - r.further_${column}`)} ${oneThread}`;

const change = 'l.correct / l.answers - l.earlierCorrect / l.earlierAnswers';
const isPaired = 'l.answers > 0 AND l.earlierAnswers > 0';
const selectSkills = `SELECT skill_id, toUInt32(sum(l.answers)) AS answers, toUInt32(countIf(${isPaired})) AS learners,
  avgIf(${change}, ${isPaired}) AS mean, stddevSampIf(${change}, ${isPaired}) AS sd
FROM (${buildPeriodSums('skill_id, user_id')}) AS l GROUP BY skill_id ${oneThread}`;

/** Only items that are harder than mastery explains. One more right and wrong answer: few answers are weak evidence. */
const selectItems = `SELECT skill_id, item_id, toUInt32(count()) AS answers, avg(is_correct) AS accuracy,
  avg(mastery_chance) AS expected
FROM skill_answers
WHERE ${retainedCondition} AND ${classCondition} AND item_id != '' AND rapid = 0
  AND local_date >= {since:Date} AND received_at >= {since:Date} - 1
GROUP BY skill_id, item_id HAVING answers >= 5 AND accuracy < expected
ORDER BY (sum(is_correct) + 1) / (answers + 2), item_id LIMIT 3 BY skill_id ${oneThread}`;

const selectLatest = `SELECT user_id AS userId, skill_id AS skillId, toUInt32(count()) AS answers, toUInt32(sum(is_correct)) AS correct
FROM (
  SELECT user_id, skill_id, is_correct FROM skill_answers
  WHERE ${retainedCondition} AND ${classCondition} AND skill_id IN {skillIds:Array(String)}
  ORDER BY learner_seq DESC LIMIT ${classConstants.stuck.latest} BY user_id, skill_id
) GROUP BY userId, skillId ${oneThread}`;

/** `answers`: in the current period. */
export type SkillSums = ChangeSums & { readonly skill_id: string; readonly answers: number };
export type LearnerSums = PeriodSums & { readonly userId: string };

export type ClassAnswers = ReturnType<typeof createClassAnswers>;

export function createClassAnswers(read: TenantRead) {
  /** Ids are part of the statement: parameters are part of the URL, which is too short for those of a large class. */
  const readClass = <Row>(query: string, tenant: string, { userIds, ...params }: ClassMembers) => {
    const ids = `[${userIds.map(quote).join()}]`;
    const statement = query.replace(idsPlace, () => ids);
    return read<Row>(statement, tenant, params);
  };
  return {
    fetchSkills: (tenant: string, period: ClassPeriod) => readClass<SkillSums>(selectSkills, tenant, period),
    /** Up to three items per skill, hardest first. */
    fetchHardItems: (tenant: string, period: ClassPeriod) =>
      readClass<Static<typeof HardItem> & Pick<SkillSums, 'skill_id'>>(selectItems, tenant, period),
    /** Counts an answer with several skills once. */
    fetchLearners: (tenant: string, period: ClassPeriod) =>
      readClass<LearnerSums>(selectLearners, tenant, period),
    fetchLatest: (tenant: string, stuck: ClassMembers & { readonly skillIds: readonly string[] }) =>
      readClass<LatestAnswers & Pick<LearnerSums, 'userId'>>(selectLatest, tenant, stuck),
  };
}
