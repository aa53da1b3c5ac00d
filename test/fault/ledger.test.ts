import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createOutbox } from '../../src/store/outbox/outbox.js';
import { connectRedis } from '../../src/store/redis/connection/client.js';
import { defaultPartitions } from '../../src/store/redis/server/deployment.js';
import { seeded } from '../support/builders/random.js';
import { planFaults } from '../support/fault/faults.js';
import { runRound } from '../support/fault/round.js';
import { faultSeed, isLongForm, progress, roundsOf } from '../support/runner/long-form.js';
import { clickhouseOf } from '../support/servers/service.js';

const random = seeded(faultSeed);
const count = roundsOf(1, 45);
let number = 0;
for (const { name, start, faults } of planFaults(count, isLongForm, random))
  test(`The service (${name}) counts each confirmed answer once, whatever fails`, async (t) => {
    t.diagnostic(`seed ${faultSeed}`);
    const deployment = await start(t);
    const redis = connectRedis(deployment.redisUrl);
    redis.on('error', () => undefined);
    t.after(() => redis.disconnect());
    const clickhouse = clickhouseOf(t, deployment);
    const outbox = createOutbox(redis, defaultPartitions);
    const countOutbox = async (): Promise<number> => (await outbox.facts()).outboxLength;
    for (const fault of faults) {
      number += 1;
      progress(`round ${number} of ${count}: ${name}, ${fault.name}`);
      const options = { deployment, clickhouse, countOutbox, fault, number, random };
      const { lost, doubled, differences, ...figures } = await runRound(t, options);
      t.diagnostic(`${fault.name}: ${JSON.stringify(figures)}`);
      const found = { fault: fault.name, lost, doubled, differences: differences.slice(0, 20) };
      assert.deepEqual(found, { fault: fault.name, lost: 0, doubled: 0, differences: [] });
    }
    await deployment.stop();
  });
