/** Fastify with the service's promises, as usually written: five statements in one transaction. */
import type { PoolClient } from 'pg';
import type { PeerSettings } from '../targets/peers.js';
import { type AnswerEvent, startFastify } from './fastify-app.js';
import {
  eventColumns,
  listValues,
  openPool,
  type ResponseRow,
  responseColumns,
  toTracedAnswer,
} from './postgres-rows.js';
import { applyAnswer, parseRecord, type SkillRecord, type TracedAnswer } from './tracing.js';

const statements = {
  findAttempt: `SELECT ${responseColumns} FROM attempts WHERE user_id = $1 AND event_id = $2`,
  createState: 'INSERT INTO mastery VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING',
  lockState: 'SELECT mastery, attempts, correct FROM mastery WHERE user_id = $1 AND skill_id = $2 FOR UPDATE',
  updateState:
    'UPDATE mastery SET mastery = $3, attempts = $4, correct = $5 WHERE user_id = $1 AND skill_id = $2',
  insertAttempt: `INSERT INTO attempts (${eventColumns}, ${responseColumns})
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) ON CONFLICT DO NOTHING`,
};

const settings: PeerSettings = JSON.parse(process.argv[2] as string);
const pool = await openPool(settings.postgresUrl);
const listState = ({ mastery, attempts, correct }: SkillRecord) => [mastery, attempts, correct] as const;

async function storeAnswer(event: AnswerEvent): Promise<TracedAnswer> {
  const values = listValues(event);
  const client = await pool.connect();
  try {
    let stored = await storeOnce(client, event, values);
    while (stored === null) stored = await storeOnce(client, event, values);
    client.release();
    return stored;
  } catch (error) {
    client.release(true); // its transaction may be open
    throw error;
  }
}

/** @returns null if a concurrent request stored the event id first */
async function storeOnce(
  client: PoolClient,
  { is_correct }: AnswerEvent,
  values: ReturnType<typeof listValues>,
): Promise<TracedAnswer | null> {
  const run = async <Row extends object>(name: keyof typeof statements, parameters: readonly unknown[]) =>
    client.query<Row>({ name, text: statements[name], values: [...parameters] });
  const [user, id, skill] = values;
  await client.query('BEGIN');
  const [known] = (await run<ResponseRow>('findAttempt', [user, id])).rows;
  if (known !== undefined) {
    await client.query('COMMIT');
    return toTracedAnswer(known);
  }
  await run('createState', [user, skill, ...listState(parseRecord(null))]);
  const [before] = (await run<SkillRecord>('lockState', [user, skill])).rows as [SkillRecord];
  const after = applyAnswer(before, is_correct);
  await run('updateState', [user, skill, ...listState(after)]);
  const { rowCount } = await run('insertAttempt', [...values, before.mastery, ...listState(after)]);
  await client.query(rowCount === 1 ? 'COMMIT' : 'ROLLBACK');
  return rowCount === 1 ? { masteryBefore: before.mastery, after } : null;
}

await startFastify(settings, storeAnswer);
