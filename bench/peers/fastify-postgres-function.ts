/** Fastify with the service's promises in one function of PostgreSQL: one prepared call per answer. */
import { DatabaseError } from 'pg';
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
import { guess, learn, parseRecord, slip, type TracedAnswer } from './tracing.js';

const start = parseRecord(null).mastery;
/** As `updateMastery`. */
const posterior = (mastery: string | number): string =>
  `(${mastery} * known / (${mastery} * known + (1 - ${mastery}) * unknown))`;
const update = (mastery: string | number): string =>
  `${posterior(mastery)} + (1 - ${posterior(mastery)}) * ${learn}`;

/** The free space of pages lets updates skip the index. */
const trackAnswer = `
ALTER TABLE mastery ADD mastery_before float8, SET (fillfactor = 70);
CREATE FUNCTION track_answer(p_user text, p_event text, p_skill text, p_correct boolean, p_seconds int, p_confidence int,
  p_difficulty float8, p_item text, p_at timestamptz) RETURNS attempts LANGUAGE plpgsql AS $$
DECLARE
  known float8 := CASE WHEN p_correct THEN ${1 - slip} ELSE ${slip} END;
  unknown float8 := CASE WHEN p_correct THEN ${guess} ELSE ${1 - guess} END;
  stored attempts;
  state mastery;
BEGIN
  SELECT * INTO stored FROM attempts WHERE user_id = p_user AND event_id = p_event;
  IF FOUND THEN RETURN stored; END IF;
  INSERT INTO mastery AS m (user_id, skill_id, mastery_before, mastery, attempts, correct)
  VALUES (p_user, p_skill, ${start}, ${update(start)}, 1, p_correct::int)
  ON CONFLICT (user_id, skill_id) DO UPDATE SET mastery_before = m.mastery, mastery = ${update('m.mastery')},
    attempts = m.attempts + 1, correct = m.correct + p_correct::int
  RETURNING * INTO state;
  INSERT INTO attempts (${eventColumns}, ${responseColumns})
  VALUES (p_user, p_event, p_skill, p_correct, p_seconds, p_confidence, p_difficulty, p_item, p_at,
    state.mastery_before, state.mastery, state.attempts, state.correct)
  RETURNING * INTO stored;
  RETURN stored;
END $$;`;

const call = {
  name: 'track',
  text: `SELECT ${responseColumns} FROM track_answer($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
};
const uniqueViolation = '23505';

const settings: PeerSettings = JSON.parse(process.argv[2] as string);
const pool = await openPool(settings.postgresUrl, trackAnswer);

async function storeAnswer(event: AnswerEvent): Promise<TracedAnswer> {
  const values = [...listValues(event)];
  for (;;) {
    try {
      const [row] = (await pool.query<ResponseRow>({ ...call, values })).rows as [ResponseRow];
      return toTracedAnswer(row);
    } catch (error) {
      // A concurrent request stored the event id first: the next call finds it.
      if (!(error instanceof DatabaseError) || error.code !== uniqueViolation) throw error;
    }
  }
}

await startFastify(settings, storeAnswer);
