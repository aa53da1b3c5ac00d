/** Whether each confirmed answer was counted once: in Redis, and in ClickHouse. */
import assert from 'node:assert/strict';
import { selectRows } from '../../../src/warehouse/clickhouse/client.js';
import { callerOf } from '../http/http.js';
import { clickhouseOf, type Scoped, type Service } from '../servers/service.js';
import { waitFor } from '../wait.js';
import { type Ledger, nameOfTally, type Tally } from './ledger.js';

type Tallies = ReadonlyMap<string, Tally>;

/** Only bounds a failing test: corrections of one learner are carried out one after the other, some seconds each. */
const drainLimitMs = 1_200_000;

/** @param key of the tenant `ledger`, whose books these are */
export async function assertBooks(t: Scoped, service: Service, key: string, ledger: Ledger): Promise<void> {
  assert.ok(ledger.tallies.size > 0, 'answers were counted');
  const isDrained = async (): Promise<boolean> => {
    const { json } = await callerOf(service, null).get('/api/v1/health');
    return json.data?.checks.pipeline.outbox_length === 0;
  };
  await waitFor('an empty outbox', isDrained, drainLimitMs);
  assertSame(await inClickhouse(t, service), ledger, 'ClickHouse');
  assertSame(await inRedis(service, key, ledger), ledger, 'Redis');
}

async function inClickhouse(t: Scoped, service: Service): Promise<Tallies> {
  const rows = await selectRows<{ user_id: string; skill_id: string } & Tally>(
    clickhouseOf(t, service),
    `SELECT user_id, skill_id, toUInt32(count()) AS answers, toUInt32(sum(is_correct)) AS correct
     FROM attempts WHERE tenant = 'ledger' GROUP BY user_id, skill_id`,
  );
  return new Map(
    rows.map(({ user_id, skill_id, answers, correct }) => [
      nameOfTally(user_id, skill_id),
      { answers, correct },
    ]),
  );
}

/** As the API tells of every learner in the books. */
async function inRedis(service: Service, key: string, { tallies }: Ledger): Promise<Tallies> {
  const found = new Map<string, Tally>();
  const caller = callerOf(service, key);
  for (const userId of new Set([...tallies.keys()].map((name) => name.split('\n')[0] as string))) {
    const { json } = await caller.get(`/api/v1/mastery/${encodeURIComponent(userId)}`);
    for (const { skill_id, total_attempts, correct_attempts } of json.data.skills) {
      found.set(nameOfTally(userId, skill_id), { answers: total_attempts, correct: correct_attempts });
    }
  }
  return found;
}

/** Equal, but for events of which nobody was told whether they were counted. */
function assertSame(stored: Tallies, { tallies, unsure }: Ledger, where: string): void {
  if (unsure() === 0) assert.deepEqual(sorted(stored), sorted(tallies), where);
  let excess = 0;
  for (const name of new Set([...stored.keys(), ...tallies.keys()])) {
    const more = (stored.get(name)?.answers ?? 0) - (tallies.get(name)?.answers ?? 0);
    assert.ok(more >= 0, `${where}: ${-more} answers of ${JSON.stringify(name)} are lost`);
    excess += more;
  }
  assert.ok(excess <= unsure(), `${where}: ${excess} more than was confirmed, ${unsure()} were open`);
}

const sorted = (tallies: Tallies) => [...tallies].sort(([a], [b]) => (a < b ? -1 : 1));
