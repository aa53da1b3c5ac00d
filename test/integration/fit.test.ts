import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { createFitDependencies } from '../../src/app/processes/consumers.js';
import { queuePrefix } from '../../src/contracts/outbox/job-data.js';
import { type ScheduledRunsOptions, schedules, startScheduledRuns } from '../../src/jobs/scheduled-runs.js';
import { createLogger } from '../../src/logger.js';
import { runFits } from '../../src/services/models/fit-models.js';
import { readItems } from '../../src/store/models/item-store.js';
import { createModelStore } from '../../src/store/models/model-store.js';
import { activeModelsKey } from '../../src/store/redis/keys.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { bigSkills, fit, skills, startFitServers } from '../support/builders/fits.js';
import { madeAnswers, storeAnswers } from '../support/builders/made-answers.js';
import type { Servers } from '../support/servers/servers.js';
import { redisOf } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const logger = createLogger('fatal', 'test');

interface FitResult {
  readonly tenants: readonly {
    readonly tenant: string;
    readonly outcome: string;
    readonly version: number;
    readonly report: {
      readonly accuracy: { readonly published: boolean; readonly new_coverage_80: number };
    } | null;
  }[];
}

async function fitJson(servers: Servers, ...args: string[]): Promise<FitResult> {
  const { code, out, err } = await fit(servers, '--json', ...args);
  assert.equal(code, 0, err);
  return JSON.parse(out) as FitResult;
}

interface StoredSkill {
  skill_id: string;
  source: string;
  parameters_version: number;
  learners: number;
  published: number;
  p_init: number;
  p_learn: number;
  p_guess: number;
  p_slip: number;
  p_forget: number;
}

const storedSkills = ({ clickhouse }: Servers): Promise<StoredSkill[]> =>
  selectRows(clickhouse, 'SELECT * FROM skill_parameters WHERE version = 1 ORDER BY skill_id');

const outcomes = ({ tenants }: FitResult) => tenants.map(({ outcome, version }) => [outcome, version]);

test('npm run fit', { timeout: 600_000 }, async (t) => {
  const servers = await startFitServers(t);
  const redis = await redisOf(t, servers.env.REDIS_URL ?? '');
  const models = createModelStore(redis);
  await storeAnswers(servers.clickhouse, madeAnswers('default', skills, 8, 1));

  await t.test('finds the parameters and publishes them', async () => {
    const dry = await fit(servers, '--dry-run');
    assert.match(dry.out, /^Tenant default: would be published, version 0 is in force\n/, dry.err);
    assert.match(
      dry.out,
      /\n {2}Streaks on a skill +0\.\d{5} +0\.\d{5} +[+\u2212]0\.\d{5} +[\d,]+ +(yes|no)\n/,
    );
    assert.deepEqual(await models.listVersions('default'), []);
    const first = await fitJson(servers, '--threads', '2');
    assert.deepEqual(outcomes(first), [['published', 1]]);
    const stored = await storedSkills(servers);
    assert.equal(stored.length, skills.length);
    for (const [i, { parameters }] of bigSkills.entries()) {
      const skill = stored[i];
      assert.deepEqual([skill?.source, skill?.parameters_version, skill?.published], ['fitted', 1, 1]);
      for (const [name, found] of [
        ['pInit', skill?.p_init],
        ['pLearn', skill?.p_learn],
        ['pGuess', skill?.p_guess],
        ['pSlip', skill?.p_slip],
        ['pForget', skill?.p_forget],
      ] as const)
        assert.ok(Math.abs(parameters[name] - (found ?? 0)) < 0.1, `${name} of ${i}: ${found}`);
    }
    const cold = stored.slice(bigSkills.length).map(({ source, published }) => `${source} ${published}`);
    assert.deepEqual(new Set(cold), new Set(['prior 1']));
    const model = await models.read('default', 1);
    assert.equal(model.skills.get('skill-3')?.parameters.pGuess, stored[3]?.p_guess);
    assert.ok((model.skills.get('skill-3')?.times.answers ?? 0) > 3000);
    const shares = first.tenants[0]?.report?.accuracy;
    assert.ok(shares?.published && Math.abs(shares.new_coverage_80 - 0.8) < 0.1, JSON.stringify(shares));
    assert.deepEqual([model.accuracy.unit, model.accuracy.learners > 200], ['days', true]);
    const [item] = await readItems(redis, 'default', 1, ['skill-3-item-7']);
    assert.ok((item?.answers ?? 0) > 100 && item?.abilityOffset !== 0, JSON.stringify(item));
  });

  await t.test('leaves a tenant without new answers alone', async () => {
    assert.deepEqual(outcomes(await fitJson(servers)), [['nothing_new', 1]]);
    const { out } = await fit(servers, '--list');
    assert.match(out, /\* 1 {2}20/);
  });

  await t.test('goes back and forth, and every change reaches ClickHouse once', async () => {
    assert.match((await fit(servers, '--back')).out, /\* 0 {2}before the first fit/);
    const again = await fit(servers, '--back');
    assert.deepEqual([again.code, again.err], [1, 'Tenant default has no version before 0\n']);
    assert.equal((await fit(servers, '--use', '9')).code, 1);
    assert.match((await fit(servers, '--use', '1')).out, /\* 1 /);
    await fit(servers);
    assert.deepEqual(
      await selectRows(
        servers.clickhouse,
        "SELECT change, version, based_on, action, model != '' AS has_model FROM model_versions ORDER BY change",
      ),
      [
        { change: 1, version: 1, based_on: 0, action: 'fit', has_model: 1 },
        { change: 2, version: 0, based_on: 1, action: 'rollback', has_model: 0 },
        { change: 3, version: 1, based_on: 0, action: 'rollback', has_model: 1 },
      ],
    );
  });

  await t.test('copies to ClickHouse what a killed run published', async () => {
    await servers.clickhouse.command({ query: 'TRUNCATE TABLE model_versions' });
    await fit(servers);
    const [row] = await selectRows<{ n: number; skills: number }>(
      servers.clickhouse,
      'SELECT toUInt32(count()) AS n, (SELECT toUInt32(count()) FROM skill_parameters) AS skills FROM model_versions',
    );
    assert.deepEqual(row, { n: 3, skills: skills.length });
  });

  await t.test('leaves very small tenants alone, and a dry run leaves no note', async () => {
    for (const learners of [1, 19]) {
      const tenant = `small-${learners}`;
      const few = bigSkills.map((skill) => ({ ...skill, learners }));
      await storeAnswers(servers.clickhouse, madeAnswers(tenant, few, 2, 6));
      for (const dry of [['--dry-run'], []])
        assert.deepEqual(outcomes(await fitJson(servers, ...dry, '--tenant', tenant)), [['too_few', 0]]);
    }
  });

  await t.test('a tenant that cannot be fitted does not keep the others from it', async () => {
    for (const tenant of ['broken', 'whole'])
      await storeAnswers(servers.clickhouse, madeAnswers(tenant, bigSkills.slice(0, 1), 8, 5));
    await redis.hset(activeModelsKey, 'broken', 7);
    const { code, err } = await fit(servers);
    assert.equal(code, 1);
    assert.match(err, /the fit of tenant broken failed.*version 7 of the model of broken is not there/);
    assert.equal(await models.fetchActiveVersion('whole'), 1);
    await redis.hdel(activeModelsKey, 'broken');
  });

  await t.test('tells in one line that ClickHouse is away', async () => {
    const env = { ...servers.env, CLICKHOUSE_URL: 'http://user:password@127.0.0.1:1/skilltrace' };
    const { code, out, err } = await fit({ ...servers, env });
    assert.deepEqual([code, out], [1, '']);
    assert.equal(
      err,
      'ClickHouse does not answer: connection refused (ECONNREFUSED); run the command again when it does\n',
    );
  });

  await t.test('says what is wrong with its arguments', async () => {
    assert.match((await fit(servers, '--help')).out, /^Usage: npm run fit/);
    for (const [wrong, ...more] of [['--threads', '0'], ['--back', '--list'], ['--use', 'x'], ['--nope']]) {
      const { code, out, err } = await fit(servers, wrong ?? '', ...more);
      assert.deepEqual([code, out, err.includes(wrong ?? '?')], [1, '', true], err);
    }
  });
});

test('scheduled fits', { timeout: 600_000 }, async (t) => {
  const { env, clickhouse } = await startFitServers(t);
  const redisUrl = env.REDIS_URL ?? '';
  const clickhouseUrl = env.CLICKHOUSE_URL ?? '';
  const redis = await redisOf(t, redisUrl);
  const models = createModelStore(redis);
  const endpoints = { redisUrl, clickhouseUrl, analystUrl: null };
  const parts = createFitDependencies({ redis, clickhouse }, endpoints, { servesRequests: true }, logger);
  const startFits = (everyMs: number, run: ScheduledRunsOptions['run']) =>
    startScheduledRuns(schedules.fit, { redisUrl, everyMs, run, logger });

  await t.test('run by themselves, again after new answers', async (t) => {
    await storeAnswers(clickhouse, madeAnswers('default', bigSkills, 8, 3));
    const run = async (signal: AbortSignal): Promise<void> => {
      await runFits(parts, { signal });
    };
    const fits = startFits(1000, run);
    t.after(() => fits.close());
    await waitFor('version 1', async () => (await models.fetchActiveVersion('default')) === 1);
    await storeAnswers(clickhouse, madeAnswers('second', bigSkills, 8, 4));
    await waitFor('the other tenant', async () => (await models.fetchActiveVersion('second')) === 1);
    assert.equal(await models.fetchActiveVersion('default'), 1);
    await fits.close();
    await startFits(0, run).close();
  });

  await t.test('end at once when they are closed', async (t) => {
    await storeAnswers(clickhouse, madeAnswers('closed', skills, 8, 5));
    let running = false;
    const run = async (signal: AbortSignal): Promise<void> => {
      running = true;
      await runFits(parts, { signal, tenant: 'closed' });
    };
    const fits = startFits(1000, run);
    t.after(() => fits.close());
    await waitFor('the run', () => running, 30_000);
    await fits.close();
    const inForce = await models.fetchActiveVersion('closed');
    assert.equal((await models.read('closed', inForce)).version, inForce);
  });

  await t.test('are run again when their process was killed', async (t) => {
    const entry = fileURLToPath(new URL('../support/commands/fit-process.js', import.meta.url));
    await obliterate(redisUrl);
    const child = spawn(process.execPath, [entry, redisUrl], { stdio: ['ignore', 'pipe', 'inherit'] });
    t.after(() => child.kill('SIGKILL'));
    await once(child.stdout, 'data', { signal: AbortSignal.timeout(30_000) });
    child.kill('SIGKILL');
    let runs = 0;
    const run = async (): Promise<void> => {
      runs += 1;
    };
    const fits = startFits(86_400_000, run);
    t.after(() => fits.close());
    await waitFor('the second run', () => runs === 1, 60_000);
  });
});

async function obliterate(redisUrl: string): Promise<void> {
  const connection = new Redis(redisUrl, { maxRetriesPerRequest: null });
  const queue = new Queue(schedules.fit.name, { connection, prefix: queuePrefix });
  await queue.obliterate({ force: true });
  await queue.close();
  connection.disconnect();
}
