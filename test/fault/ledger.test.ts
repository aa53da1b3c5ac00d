/**
 * Nothing lost, nothing counted twice: clients post answers and keep a ledger while processes and servers are killed,
 * stopped and cut off at random moments.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { createOutbox } from '../../src/store/outbox/outbox.js';
import { connectRedis } from '../../src/store/redis/connection/client.js';
import { defaultPartitions } from '../../src/store/redis/server/deployment.js';
import { connectWarehouse } from '../../src/warehouse/clickhouse/client.js';
import { seeded } from '../support/builders/random.js';
import { type Round, type RoundOptions, runRound } from '../support/fault/round.js';
import { planRounds } from '../support/fault/rounds.js';
import { tableOf } from '../support/fault/table.js';
import { faultSeed, isLongForm, progress, roundsOf } from '../support/runner/long-form.js';
import { exitAfterTests } from '../support/servers/linger.js';
import type { Scoped } from '../support/servers/service.js';

exitAfterTests();

const random = seeded(faultSeed);
const count = roundsOf(1, 45);
const rounds: Round[] = [];
after(() => process.stdout.write(`seed ${faultSeed}\n${tableOf(rounds)}\n`));

let number = 0;
for (const { name, start, rounds: faults } of planRounds(count, isLongForm, random)) {
  test(`${name}, seed ${faultSeed}`, async (t) => {
    const stand = await start(t);
    const reach = reachOf(t, stand);
    for (const fault of faults) {
      number += 1;
      progress(`round ${number} of ${count}: ${name}, ${fault.name}`);
      const round = await runRound(t, { ...reach, stand, fault, number, random });
      rounds.push(round);
      const { lost, doubled, differences } = round;
      const told = { fault: fault.name, lost, doubled, differences: differences.slice(0, 20) };
      assert.deepEqual(told, { fault: fault.name, lost: 0, doubled: 0, differences: [] });
    }
    await stand.stop();
  });
}

function reachOf(t: Scoped, { redisUrl, clickhouseUrl }: RoundOptions['stand']) {
  const redis = connectRedis(redisUrl);
  redis.on('error', () => undefined);
  t.after(() => redis.disconnect());
  const clickhouse = connectWarehouse(clickhouseUrl);
  t.after(() => clickhouse.close());
  return { clickhouse, facts: createOutbox(redis, defaultPartitions).facts };
}
