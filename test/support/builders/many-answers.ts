/** Generates many stored answers quickly, inside ClickHouse. */
import type { ClickHouseClient } from '@clickhouse/client';
import { partitionOf } from '../../../src/store/redis/keys.js';

const constants = {
  p_init: 0.3,
  p_learn: 0.1,
  p_guess: 0.2,
  p_slip: 0.1,
  rapid_seconds: 3,
  log_time_mean: 4,
  log_time_sd: 0.6,
  p_correct: 0.6,
  weight: 1,
};

/** Learners per insert. */
const learnersTogether = 20_000;

/** Inserts `each` answers per learner, with and without items and event ids, on seven skills, during the last days. */
export async function storeManyAnswers(
  client: ClickHouseClient,
  learners: number,
  each: number,
  partitions: number,
): Promise<void> {
  const names = Object.keys(constants).join(', ');
  for (let from = 0; from < learners; from += learnersTogether) {
    const count = Math.min(learnersTogether, learners - from);
    const placed = Array.from({ length: count }, (_, i) =>
      partitionOf('default', `u${from + i}`, partitions),
    );
    await client.command({
      query: `INSERT INTO attempts (tenant, user_id, skill_id, item_id, event_id, is_correct, time_spent_seconds,
        question_difficulty, occurred_at, received_at, learner_seq, learner_version, event_fingerprint, partition_id,
        outbox_ms, outbox_seq, ${names})
        SELECT 'default', concat('u', toString(learner)), concat('skill ', toString(cityHash64(seq, learner) % 7)),
          if(seq % 3 = 0, '', concat('item ', toString(cityHash64(learner, seq) % 500))),
          if(seq % 2 = 0, '', concat('e', toString(seq))), cityHash64(seq, learner, 1) % 3 > 0,
          10 + cityHash64(seq, learner, 2) % 90, if(seq % 5 = 0, NULL, 0.25),
          now64(3) - toIntervalSecond(600 * (${each} - seq)), now64(3) - toIntervalHour(1), seq, intDiv(seq + 2, 3), seq,
          {placed:Array(UInt16)}[learner - ${from} + 1], 1000000 + seq, learner, ${Object.values(constants).join(', ')}
        FROM (SELECT ${from} + intDiv(number, ${each}) AS learner, number % ${each} + 1 AS seq
              FROM numbers(${count * each}))`,
      query_params: { placed },
    });
  }
}
