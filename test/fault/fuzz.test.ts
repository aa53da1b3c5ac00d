import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { allScopes } from '../../src/contracts/access/access.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import {
  type AnswerCount,
  type ConfirmedAnswers,
  countKey,
  createConfirmedAnswers,
} from '../support/fuzz/confirmed-answers.js';
import { type Request, request } from '../support/fuzz/requests.js';
import { createSession, type Keys } from '../support/fuzz/session.js';
import { callerOf } from '../support/http/http.js';
import { nameOf, routeTable } from '../support/http/route-table.js';
import { faultSeed, isLongForm, roundsOf } from '../support/runner/long-form.js';
import { clickhouseOf, keysOf, startService } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const service = await startService({ after });
const requests = roundsOf(1_500, 120_000);
const requestsPerRun = 100;
/** Corrections of one learner are applied one by one, some seconds each. */
const drainLimitMs = 1_200_000;

async function createKeys(): Promise<Keys> {
  const keys = await keysOf({ after }, service);
  return {
    ledger: await keys.add({ tenant: 'ledger' }),
    wild: await keys.add({ tenant: 'wild' }),
    reader: await keys.add({ tenant: 'wild', scopes: ['read'] }),
    writer: await keys.add({ tenant: 'wild', scopes: ['write'] }),
    operator: await keys.add({ tenant: 'wild', scopes: allScopes }),
    poor: await keys.add({ tenant: 'wild', quota: 20 }),
    unknown: 'unknown',
  };
}

type Counts = ReadonlyMap<string, AnswerCount>;

async function readClickhouse(): Promise<Counts> {
  const rows = await selectRows<{ user_id: string; skill_id: string } & AnswerCount>(
    clickhouseOf({ after }, service),
    `SELECT user_id, skill AS skill_id, toUInt32(count()) AS answers, toUInt32(sum(is_correct)) AS correct
     FROM attempts ARRAY JOIN arrayPushFront(further_skills.skill_id, skill_id) AS skill
     WHERE tenant = 'ledger' GROUP BY user_id, skill`,
  );
  return new Map(rows.map(({ user_id, skill_id, ...count }) => [countKey(user_id, skill_id), count]));
}

async function readRedis(key: string, confirmed: Counts): Promise<Counts> {
  const found = new Map<string, AnswerCount>();
  const caller = callerOf(service, key);
  for (const userId of new Set([...confirmed.keys()].map((name) => name.split('\n')[0] ?? ''))) {
    const { json } = await caller.get(`/api/v1/mastery/${encodeURIComponent(userId)}`);
    for (const { skill_id, total_attempts, correct_attempts } of json.data.skills)
      found.set(countKey(userId, skill_id), { answers: total_attempts, correct: correct_attempts });
  }
  return found;
}

/** Answers without a confirmation may be counted. */
function assertSame(stored: Counts, { counts, maxUnconfirmed }: ConfirmedAnswers, store: string): void {
  const sorted = (all: Counts) => [...all].sort(([a], [b]) => (a < b ? -1 : 1));
  if (maxUnconfirmed() === 0) assert.deepEqual(sorted(stored), sorted(counts), store);
  let surplus = 0;
  for (const name of new Set([...stored.keys(), ...counts.keys()])) {
    const more = (stored.get(name)?.answers ?? 0) - (counts.get(name)?.answers ?? 0);
    assert.ok(more >= 0, `${store} lost ${-more} answers of ${JSON.stringify(name)}`);
    surplus += more;
  }
  assert.ok(surplus <= maxUnconfirmed(), `${store} has ${surplus} answers more than were confirmed`);
}

test('Every route responds as described to generated requests and counts each confirmed answer once', async (t) => {
  t.diagnostic(`${requests} requests, seed ${faultSeed}`);
  const keys = await createKeys();
  const confirmed = createConfirmedAnswers();
  const session = createSession(service.port, keys, confirmed, 8);
  t.after(session.end);
  const lists = fc.array(request, { minLength: requestsPerRun, maxLength: requestsPerRun });
  await fc.assert(
    fc.asyncProperty(lists, (list) => session.send(list)),
    {
      // fast-check takes signed seeds of 32 bits.
      seed: faultSeed | 0,
      numRuns: Math.ceil(requests / requestsPerRun),
      // A shorter list would meet another state.
      endOnFailure: true,
      reporter: ({ failed, errorInstance }: fc.RunDetails<[Request[]]>) => {
        if (failed) throw errorInstance;
      },
    },
  );
  const { statuses, successes } = session.coverage;
  t.diagnostic(`responses by status: ${JSON.stringify(Object.fromEntries(statuses))}`);

  const caller = callerOf(service, null);
  const isDrained = async (): Promise<boolean> => {
    const { json } = await caller.get('/api/v1/health');
    return json.data?.status === 'ok' && json.data.checks.pipeline.outbox_length === 0;
  };
  await waitFor('an empty outbox', isDrained, drainLimitMs);
  assert.ok(confirmed.counts.size > 0, 'no answer was counted');
  assertSame(await readClickhouse(), confirmed, 'ClickHouse');
  assertSame(await readRedis(keys.ledger, confirmed.counts), confirmed, 'Redis');

  assert.ok((statuses.get(200) ?? 0) > requests / 10, 'few requests are valid');
  const expected = isLongForm
    ? [207, 400, 401, 403, 404, 405, 412, 413, 415, 422, 429]
    : [400, 401, 403, 404];
  for (const status of expected) assert.ok(statuses.has(status), `no response has status ${status}`);
  const unreached = routeTable.map(nameOf).filter((name) => !successes.has(name));
  if (isLongForm) assert.deepEqual(unreached, [], 'these routes never succeeded');
});
