import type { ClickHouseClient } from '@clickhouse/client';
import { numberSkillSets, sharedArrays } from '../../domain/base/answer-log.js';
import { mapNonEmpty } from '../../domain/base/common.js';
import { splitIds } from '../../domain/tracing/course.js';
import { createInterner } from '../../lists.js';
import { createReadDeadline, selectNumber, selectRows } from '../clickhouse/client.js';

export interface TenantAnswers {
  readonly tenant: string;
  readonly answers: number;
  /** Changes with every insert and deletion. */
  readonly mark: string;
}

export const listTenantAnswers = (client: ClickHouseClient): Promise<TenantAnswers[]> =>
  selectRows<TenantAnswers>(
    client,
    `SELECT tenant, toUInt32(count()) AS answers, concat(toString(answers), ' ', toString(max(received_at))) AS mark
FROM attempts GROUP BY tenant ORDER BY tenant`,
  );

/** Includes answers that retention deleted. @throws Error if ClickHouse is unavailable */
export const countSkillAnswers = (
  client: ClickHouseClient,
  tenant: string,
  skillId: string,
): Promise<number> =>
  selectNumber(
    client,
    `SELECT toFloat64(sum(attempts)) AS answers FROM daily_skill
WHERE tenant = {tenant:String} AND skill_id = {skillId:String}`,
    { params: { tenant, skillId }, signal: createReadDeadline() },
  );

const sampleCondition = 'tenant = {tenant:String} AND cityHash64(user_id) % {one_in:UInt32} = 0';

/** Milliseconds from UTC to local time, for a fit that counts local days. */
const localOffset = `1000 * timeZoneOffset(toTimeZone(occurred_at,
    assumeNotNull((SELECT if(count() = 0, 'UTC', toString(any(time_zone))) FROM time_zones WHERE tenant = {tenant:String}))))`;

/**
 * RowBinary: little-endian, strings after their length. `addRow` reads the columns in this order. Several skills are
 * sorted and joined by line feeds, which no id contains.
 */
const selectAnswers = `SELECT cityHash64(user_id) AS learner, toFloat64(toUnixTimestamp64Milli(occurred_at) + ${localOffset}) AS at,
  toFloat32(ifNull(time_spent_seconds, nan)) AS seconds, toFloat32(ifNull(question_difficulty, nan)) AS difficulty,
  is_correct,
  if(empty(further_skills.skill_id), toString(skill_id),
    arrayStringConcat(arraySort(arrayPushFront(further_skills.skill_id, toString(skill_id))), '\\n')) AS skills,
  item_id
FROM attempts WHERE ${sampleCondition} ORDER BY tenant, user_id, learner_seq FORMAT RowBinary`;

const fixedRowBytes = 25;

/** Includes room for answers that arrive after the count. */
const computeCapacity = (answers: number): number => Math.ceil(answers * 1.01) + 1000;

/**
 * @param maxAnswers above it, reads a sample of learners
 * @returns like `AnswersReply`, with `itemIds` (index 0: no item) instead of hashes
 * @throws Error if the response is incomplete
 */
export async function readAnswerColumns(client: ClickHouseClient, tenant: string, maxAnswers: number) {
  const { answers, sampledOneIn } = await chooseSample(client, tenant, maxAnswers);
  const { stream } = await client.exec({
    query: selectAnswers,
    query_params: { tenant, one_in: sampledOneIn },
  });
  const columns = createColumns(computeCapacity(answers));
  let remainder: Buffer = Buffer.alloc(0);
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    remainder = columns.addRows(remainder.length === 0 ? chunk : Buffer.concat([remainder, chunk]));
  }
  // ClickHouse can report a late error only by ending the response.
  if (remainder.length > 0 || columns.rows() < answers)
    throw new Error(`ClickHouse returned ${columns.rows()} of ${answers} answers`);
  return { ...columns.finish(), sampledOneIn };
}

async function chooseSample(client: ClickHouseClient, tenant: string, maxAnswers: number) {
  const query = `SELECT toUInt32(count()) AS answers FROM attempts WHERE ${sampleCondition}`;
  for (let sampledOneIn = 1; ; ) {
    const answers = await selectNumber(client, query, { params: { tenant, one_in: sampledOneIn } });
    if (answers <= maxAnswers) return { answers, sampledOneIn };
    sampledOneIn = sampledOneIn === 1 ? Math.ceil(answers / maxAnswers) : sampledOneIn + 1;
  }
}

function createColumns(capacity: number) {
  const skill = sharedArrays.counts(capacity);
  const item = sharedArrays.counts(capacity);
  const correct = sharedArrays.bytes(capacity);
  const at = sharedArrays.doubles(capacity);
  const seconds = sharedArrays.floats(capacity);
  const difficulty = sharedArrays.floats(capacity);
  const starts: number[] = [];
  const hashes: number[] = [];
  const skillSets = createInterner([]);
  const items = createInterner(['']);
  let lastLearner = -1n;
  let rowCount = 0;

  /** @returns start of the next row; null: incomplete row */
  function addRow(buffer: Buffer, start: number): number | null {
    const skillLength = readLength(buffer, start + fixedRowBytes);
    const itemLength = readLength(buffer, skillLength.end + skillLength.bytes);
    const end = itemLength.end + itemLength.bytes;
    // A truncated length is NaN, and so is `end`.
    if (!(end <= buffer.length)) return null;
    // Skips answers that arrived after the count: the next fit reads them.
    if (rowCount === capacity) return end;
    const learner = buffer.readBigUInt64LE(start);
    if (learner !== lastLearner) {
      lastLearner = learner;
      starts.push(rowCount);
      hashes.push(Number(learner >> 32n));
    }
    at[rowCount] = buffer.readDoubleLE(start + 8);
    seconds[rowCount] = buffer.readFloatLE(start + 16);
    difficulty[rowCount] = buffer.readFloatLE(start + 20);
    correct[rowCount] = buffer[start + 24] as number;
    skill[rowCount] = skillSets.indexOf(
      buffer.toString('utf8', skillLength.end, skillLength.end + skillLength.bytes),
    );
    item[rowCount] = items.indexOf(buffer.toString('utf8', itemLength.end, end));
    rowCount++;
    return end;
  }

  return {
    rows: () => rowCount,
    /** @returns the incomplete last row */
    addRows: (chunk: Buffer): Buffer => {
      for (let offset = 0; ; ) {
        const next = addRow(chunk, offset);
        if (next === null) return chunk.subarray(offset);
        offset = next;
      }
    },
    finish: () => {
      const skills = createInterner([]);
      const sets = skillSets.ids.map((set) => mapNonEmpty(splitIds(set), skills.indexOf));
      const { numbers, members } = numberSkillSets(sets, skills.ids.length);
      for (let i = 0; i < rowCount; i++) skill[i] = numbers[skill[i] as number] as number;
      const log = {
        starts: toSharedCounts([...starts, rowCount]),
        skill: skill.subarray(0, rowCount),
        item: item.subarray(0, rowCount),
        correct: correct.subarray(0, rowCount),
        at: at.subarray(0, rowCount),
        seconds: seconds.subarray(0, rowCount),
        difficulty: difficulty.subarray(0, rowCount),
        skills: skills.ids.length,
        items: items.ids.length - 1,
        members,
      };
      return { log, skillIds: skills.ids, itemIds: items.ids, learnerHash: toSharedCounts(hashes) };
    },
  };
}

/** Length in LEB128, one or two bytes: ten ids have at most 5,129 bytes. */
function readLength(buffer: Buffer, offset: number): { readonly bytes: number; readonly end: number } {
  const low = buffer[offset] ?? Number.NaN;
  if (low < 128) return { bytes: low, end: offset + 1 };
  return { bytes: low - 128 + 128 * (buffer[offset + 1] ?? Number.NaN), end: offset + 2 };
}

function toSharedCounts(values: readonly number[]): Uint32Array {
  const column = sharedArrays.counts(values.length);
  column.set(values);
  return column;
}
