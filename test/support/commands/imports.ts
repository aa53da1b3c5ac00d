/** Imports of made-up answers. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { indices } from '../../../src/lists.js';
import { selectRows } from '../../../src/warehouse/clickhouse/client.js';
import type { Servers } from '../servers/servers.js';
import { runCommand, spawnCommand } from './command.js';

export const startImport = (t: TestContext, env: Record<string, string>, ...args: string[]) =>
  spawnCommand(t, 'import', env, ...args);

export const runImport = ({ env }: Pick<Servers, 'env'>, ...args: string[]) =>
  runCommand('import', env, ...args);

/** CSV in which learners take turns of 1 to 40 answers. Every tenth answer is wrong. */
export const answers = (rows: number, learners: number): string =>
  toText(
    'user_id,skill_id,correct,item_id,order',
    indices(rows).map((i) => toFields(i, learners).join()),
  );

function toFields(i: number, learners: number) {
  const user = Math.floor(i / (1 + (i % 40))) % learners;
  return [`u${user}`, `s${i % 7}`, i % 10 === 0 ? 0 : 1, `i${i}`, i] as const;
}

const toText = (header: string, lines: readonly string[]): string => `${[header, ...lines].join('\n')}\n`;

/** The same answers in the format of ASSISTments 2009, in order of the skill. Every third answer has two rows. */
export function assistmentsAnswers(count: number, learners: number): string {
  const rows = indices(count).flatMap((i) => {
    const [user, skill, correct, item, order] = toFields(i, learners);
    return [skill, ...(i % 3 === 0 ? ['t'] : [])].map((one) => [one, order, user, item, correct] as const);
  });
  const sorted = rows.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return toText(
    'skill_name,order_id,user_id,problem_id,correct',
    sorted.map((row) => row.join()),
  );
}

type Stored = Record<'rows' | 'learners' | 'correct' | 'ids' | 'disordered', number>;

/** `disordered`: learners with gaps in their sequence, or with items in another order than in the file. */
export async function stored({ clickhouse }: Servers): Promise<Stored> {
  const [row = assert.fail('no counts')] = await selectRows<Stored>(
    clickhouse,
    `SELECT toUInt32(count()) AS rows, toUInt32(uniqExact(user_id)) AS learners,
      toUInt32(sum(is_correct)) AS correct, toUInt32(uniqExact(item_id)) AS ids,
      toUInt32((SELECT count() FROM (
        SELECT user_id, arraySort(x -> x.1, groupArray((learner_seq, toUInt32OrZero(substring(item_id, 2))))) AS a
        FROM attempts GROUP BY tenant, user_id
        HAVING a.1 != range(1, length(a) + 1) OR a.2 != arraySort(a.2)))) AS disordered
     FROM attempts`,
  );
  return row;
}

/** Removes the warnings that a slow machine causes from a command's standard error. */
export const withoutWarnings = (err: string): string => err.replace(/^\{"level":40.*\n/gm, '');
