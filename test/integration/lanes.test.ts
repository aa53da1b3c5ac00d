/** Three lanes, also where the machine has cores for one: single answers and batches of the same learners at once. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { callerOf, event } from '../support/http/http.js';
import { startService } from '../support/servers/service.js';

const service = await startService({ after }, { lanes: 3 });
const caller = callerOf(service, service.key);

/** Learners of many partitions, one of whom answers as much as all others. */
const userOf = (n: number): string => (n % 2 === 0 ? 'hot' : `learner ${n % 20}`);
const eventOf = (n: number) => event({ user_id: userOf(n), skill_id: 'fractions', event_id: `${n}` });
const rounds = 40;
const inBatch = 10;

test('each answer of single ones and batches is counted once, and what is sent again is told the same', async () => {
  const send = async (round: number): Promise<string[]> => {
    const [single, ...many] = Array.from({ length: 1 + inBatch }, (_, i) =>
      eventOf(round * (1 + inBatch) + i),
    );
    const [one, all] = await Promise.all([caller.track(single), caller.trackAll(many)]);
    assert.deepEqual([one.status, all.status], [200, 200]);
    const results: { data: object }[] = all.json.data.results;
    return [one.json.data, ...results.map(({ data }) => data)].map((data) => JSON.stringify(data));
  };
  const each = Array.from({ length: rounds }, (_, round) => round);
  const first = (await Promise.all(each.map(send))).flat();
  const hot = first.map((text) => JSON.parse(text)).filter((_, n) => userOf(n) === 'hot');
  assert.deepEqual(
    hot.map(({ total_attempts }) => total_attempts).sort((a, b) => a - b),
    hot.map((_, i) => i + 1),
  );
  assert.deepEqual((await Promise.all(each.map(send))).flat(), first);
});

test('the answers of a batch are counted in its order, whichever lanes they go through', async () => {
  const events = Array.from({ length: 300 }, (_, n) =>
    event({ user_id: `in order ${n % 7}`, skill_id: 'fractions', event_id: `${n}` }),
  );
  const { json } = await caller.trackAll(events);
  assert.deepEqual(
    json.data.results.map(({ data }: { data: { total_attempts: number } }) => data.total_attempts),
    events.map((_, n) => 1 + Math.floor(n / 7)),
  );
});
