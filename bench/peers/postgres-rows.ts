/** Tables and parameters of the PostgreSQL peers. */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import type { AnswerEvent } from './fastify-app.js';
import type { TracedAnswer } from './tracing.js';

const poolSize = 10;

const tables = `
CREATE TABLE mastery (user_id text, skill_id text, mastery float8 NOT NULL, attempts int NOT NULL, correct int NOT NULL,
  PRIMARY KEY (user_id, skill_id));
CREATE TABLE attempts (user_id text, event_id text, skill_id text NOT NULL, is_correct boolean NOT NULL,
  time_spent_seconds int, confidence_score int, question_difficulty float8, item_id text, occurred_at timestamptz,
  received_at timestamptz NOT NULL DEFAULT now(), mastery_before float8 NOT NULL, mastery float8 NOT NULL,
  attempts int NOT NULL, correct int NOT NULL, PRIMARY KEY (user_id, event_id));`;

/** @param more SQL that follows the creation of the tables */
export async function openPool(connectionString: string, more = ''): Promise<pg.Pool> {
  const pool = new pg.Pool({ connectionString, max: poolSize });
  // If the benchmark was killed, PostgreSQL ends first.
  pool.on('error', () => process.exit(1));
  await pool.query(tables + more);
  return pool;
}

/** Columns of `attempts` that come from the client, in the order of `listValues`. */
export const eventColumns = `user_id, event_id, skill_id, is_correct, time_spent_seconds, confidence_score,
  question_difficulty, item_id, occurred_at`;

export const listValues = (event: AnswerEvent) =>
  [
    event.user_id,
    event.event_id ?? randomUUID(),
    event.skill_id,
    event.is_correct,
    event.time_spent_seconds,
    event.confidence_score,
    event.question_difficulty,
    event.item_id,
    event.occurred_at,
  ] as const;

/** The columns of `attempts` that hold the first response. */
export const responseColumns = 'mastery_before, mastery, attempts, correct';

export interface ResponseRow {
  readonly mastery_before: number;
  readonly mastery: number;
  readonly attempts: number;
  readonly correct: number;
}

export const toTracedAnswer = ({ mastery_before, ...after }: ResponseRow): TracedAnswer => ({
  masteryBefore: mastery_before,
  after,
});
