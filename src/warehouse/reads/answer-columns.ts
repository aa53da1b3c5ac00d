import type { ClickHouseClient } from '@clickhouse/client';
import { sharedArrays } from '../../domain/base/answer-log.js';
import { createInterner } from '../../lists.js';
import { callersTime, selectNumber, selectRows } from '../clickhouse/client.js';

export interface TenantAnswers {
  readonly tenant: string;
  readonly answers: number;
  /** Changes with every insert and deletion. */
  readonly mark: string;
}

export const tenantsWithAnswers = (client: ClickHouseClient): Promise<TenantAnswers[]> =>
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
    { params: { tenant, skillId }, signal: callersTime() },
  );

const ofSample = 'tenant = {tenant:String} AND cityHash64(user_id) % {one_in:UInt32} = 0';

/** RowBinary: little-endian, strings after their length. `addRow` reads the columns in this order. */
const selectAnswers = `SELECT cityHash64(user_id) AS learner, toFloat64(toUnixTimestamp64Milli(occurred_at)) AS at,
  toFloat32(ifNull(time_spent_seconds, nan)) AS seconds, toFloat32(ifNull(question_difficulty, nan)) AS difficulty,
  is_correct, toString(skill_id) AS skill, item_id
FROM attempts WHERE ${ofSample} ORDER BY tenant, user_id, learner_seq FORMAT RowBinary`;

const fixedBytes = 25;

/** Includes room for answers that arrive after the count. */
const roomFor = (answers: number): number => Math.ceil(answers * 1.01) + 1000;

/**
 * @param maxAnswers above it, reads a sample of learners @returns `AnswersReply`, with items by index (0:
 * none)
 * @throws Error if the response is incomplete
 */
export async function readAnswerColumns(client: ClickHouseClient, tenant: string, maxAnswers: number) {
  const { answers, sampledOneIn } = await chooseSample(client, tenant, maxAnswers);
  const { stream } = await client.exec({
    query: selectAnswers,
    query_params: { tenant, one_in: sampledOneIn },
  });
  const columns = createColumns(roomFor(answers));
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    rest = columns.addRows(rest.length === 0 ? chunk : Buffer.concat([rest, chunk]));
  }
  // ClickHouse can report a late error only by ending the response.
  if (rest.length > 0 || columns.rows() < answers)
    throw new Error(`ClickHouse sent ${columns.rows()} of ${answers} answers`);
  return { ...columns.done(), sampledOneIn };
}

async function chooseSample(client: ClickHouseClient, tenant: string, maxAnswers: number) {
  const query = `SELECT toUInt32(count()) AS answers FROM attempts WHERE ${ofSample}`;
  for (let sampledOneIn = 1; ; ) {
    const answers = await selectNumber(client, query, { params: { tenant, one_in: sampledOneIn } });
    if (answers <= maxAnswers) return { answers, sampledOneIn };
    sampledOneIn = sampledOneIn === 1 ? Math.ceil(answers / maxAnswers) : sampledOneIn + 1;
  }
}

function createColumns(room: number) {
  const skill = sharedArrays.counts(room);
  const item = sharedArrays.counts(room);
  const correct = sharedArrays.bytes(room);
  const at = sharedArrays.doubles(room);
  const seconds = sharedArrays.floats(room);
  const difficulty = sharedArrays.floats(room);
  const starts: number[] = [];
  const hashes: number[] = [];
  const skills = createInterner([]);
  const items = createInterner(['']);
  let last = -1n;
  let rows = 0;

  /** @returns start of the next row; null: incomplete row */
  function addRow(buffer: Buffer, start: number): number | null {
    const skillLength = lengthAt(buffer, start + fixedBytes);
    const itemLength = lengthAt(buffer, skillLength.end + skillLength.bytes);
    const end = itemLength.end + itemLength.bytes;
    // A truncated length is NaN, and so is `end`.
    if (!(end <= buffer.length)) return null;
    if (rows === room) return end;
    const learner = buffer.readBigUInt64LE(start);
    if (learner !== last) {
      last = learner;
      starts.push(rows);
      hashes.push(Number(learner >> 32n));
    }
    at[rows] = buffer.readDoubleLE(start + 8);
    seconds[rows] = buffer.readFloatLE(start + 16);
    difficulty[rows] = buffer.readFloatLE(start + 20);
    correct[rows] = buffer[start + 24] as number;
    skill[rows] = skills.indexOf(
      buffer.toString('utf8', skillLength.end, skillLength.end + skillLength.bytes),
    );
    item[rows] = items.indexOf(buffer.toString('utf8', itemLength.end, end));
    rows++;
    return end;
  }

  return {
    rows: () => rows,
    /** @returns the incomplete last row */
    addRows: (chunk: Buffer): Buffer => {
      for (let place = 0; ; ) {
        const next = addRow(chunk, place);
        if (next === null) return chunk.subarray(place);
        place = next;
      }
    },
    done: () => ({
      log: {
        starts: sharedCounts([...starts, rows]),
        skill: skill.subarray(0, rows),
        item: item.subarray(0, rows),
        correct: correct.subarray(0, rows),
        at: at.subarray(0, rows),
        seconds: seconds.subarray(0, rows),
        difficulty: difficulty.subarray(0, rows),
        skills: skills.ids.length,
        items: items.ids.length - 1,
      },
      skillIds: skills.ids,
      itemIds: items.ids,
      learnerHash: sharedCounts(hashes),
    }),
  };
}

/** Length in LEB128, one or two bytes: ids have at most 512 bytes. */
function lengthAt(buffer: Buffer, at: number): { readonly bytes: number; readonly end: number } {
  const low = buffer[at] ?? Number.NaN;
  if (low < 128) return { bytes: low, end: at + 1 };
  return { bytes: low - 128 + 128 * (buffer[at + 1] ?? Number.NaN), end: at + 2 };
}

function sharedCounts(values: readonly number[]): Uint32Array {
  const column = sharedArrays.counts(values.length);
  column.set(values);
  return column;
}
