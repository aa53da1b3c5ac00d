/** `npm run fit` and scheduled fits. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { createFitDependencies } from '../../src/app/processes/consumers.js';
import type { BktParameters } from '../../src/domain/base/bkt-parameters.js';
import { type ScheduledRunsOptions, schedules, startScheduledRuns } from '../../src/jobs/scheduled-runs.js';
import { createLogger } from '../../src/logger.js';
import { runFits } from '../../src/services/models/fit-models.js';
import { readItems } from '../../src/store/models/item-store.js';
import { createModelStore } from '../../src/store/models/model-store.js';
import { activeModelsKey } from '../../src/store/redis/keys.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { bigSkills, fit, skills, startFitServers } from '../support/builders/fits.js';
import { madeAnswers, storeAnswers } from '../support/builders/made-answers.js';
import { countOf } from '../support/inspect/warehouse.js';
import { redisOf } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const logger = createLogger('fatal', 'test');

test('npm run fit', async (t) => {
  const servers = await startFitServers(t);
  const { clickhouse } = servers;
  const redis = await redisOf(t, servers.env.REDIS_URL ?? '');
  const models = createModelStore(redis);
  await storeAnswers(clickhouse, madeAnswers('default', skills, 8, 1));

  const fitTenants = async (...args: string[]) => {
    const { code, out, err } = await fit(servers, '--json', ...args);
    assert.equal(code, 0, err);
    return JSON.parse(out).tenants;
  };
  const fitOutcomes = async (...args: string[]) =>
    (await fitTenants(...args)).map((one: Record<string, unknown>) => [one.outcome, one.version]);

  await t.test('prints the result of a dry run and publishes nothing', async () => {
    const { out, err } = await fit(servers, '--dry-run');
    assert.match(out, /^Tenant default: would be published; active version: 0\n/, err);
    assert.match(out, /\n {2}Streaks on a skill +0\.\d{5} +0\.\d{5} +[+\u2212]0\.\d{5} +[\d,]+ +(yes|no)\n/);
    assert.deepEqual(await models.listVersions('default'), []);
  });

  await t.test('publishes the parameters that the answers were made with', async () => {
    const [{ outcome, version, report }] = await fitTenants('--threads', '2');
    assert.deepEqual([outcome, version], ['published', 1]);
    assert.ok(report.accuracy.published && Math.abs(report.accuracy.new_coverage_80 - 0.8) < 0.1);
    const stored = await selectRows<BktParameters & { readonly source: string; readonly published: number }>(
      clickhouse,
      `SELECT source, published, p_init AS pInit, p_learn AS pLearn, p_guess AS pGuess, p_slip AS pSlip,
        p_forget AS pForget FROM skill_parameters WHERE version = 1 ORDER BY skill_id`,
    );
    const sources = stored.map(({ source, published }) => `${source} ${published}`);
    const expected = skills.map((_, i) => (i < bigSkills.length ? 'fitted 1' : 'prior 1'));
    assert.deepEqual(sources, expected);
    for (const [i, { parameters }] of bigSkills.entries())
      for (const [name, value] of Object.entries(parameters)) {
        const found = stored[i]?.[name as keyof BktParameters] ?? Number.NaN;
        assert.ok(Math.abs(value - found) < 0.1, `${name} of ${i}: ${found}`);
      }
    const model = await models.read('default', 1);
    const skill = model.skills.get('skill-3');
    assert.equal(skill?.parameters.pGuess, stored[3]?.pGuess);
    assert.ok((skill?.times.answers ?? 0) > 3000, `${skill?.times.answers} times`);
    assert.deepEqual([model.accuracy.unit, model.accuracy.learners > 200], ['days', true]);
    const [item] = await readItems(redis, 'default', 1, ['skill-3-item-7']);
    assert.ok((item?.answers ?? 0) > 100 && item?.abilityOffset !== 0, JSON.stringify(item));
  });

  await t.test('does not fit a tenant without new answers', async () => {
    assert.deepEqual(await fitOutcomes(), [['nothing_new', 1]]);
    assert.match((await fit(servers, '--list')).out, /\* 1 {2}20/);
  });

  await t.test('activates other versions and records each change in ClickHouse once', async () => {
    assert.match((await fit(servers, '--back')).out, /\* 0 {2}before the first fit/);
    const again = await fit(servers, '--back');
    assert.deepEqual([again.code, again.err], [1, 'Tenant default has no version before version 0\n']);
    assert.equal((await fit(servers, '--use', '9')).code, 1);
    assert.match((await fit(servers, '--use', '1')).out, /\* 1 /);
    await fit(servers);
    const columns = "change, version, based_on, action, model != '' AS has_model";
    const selectChanges = () =>
      selectRows(clickhouse, `SELECT ${columns} FROM model_versions ORDER BY change`);
    const changes = [
      { change: 1, version: 1, based_on: 0, action: 'fit', has_model: 1 },
      { change: 2, version: 0, based_on: 1, action: 'rollback', has_model: 0 },
      { change: 3, version: 1, based_on: 0, action: 'rollback', has_model: 1 },
    ];
    assert.deepEqual(await selectChanges(), changes);
    // As if a run had been killed after it published and before it recorded the change.
    await clickhouse.command({ query: 'TRUNCATE TABLE model_versions' });
    await fit(servers);
    assert.deepEqual(await selectChanges(), changes);
    assert.equal(await countOf(clickhouse, 'skill_parameters'), skills.length);
  });

  await t.test('does not fit a tenant with fewer than 20 learners', async () => {
    const few = bigSkills.map((skill) => ({ ...skill, learners: 19 }));
    await storeAnswers(clickhouse, madeAnswers('small', few, 2, 6));
    for (const args of [['--dry-run'], []])
      assert.deepEqual(await fitOutcomes(...args, '--tenant', 'small'), [['too_few', 0]]);
  });

  await t.test('fits the other tenants if one cannot be fitted', async () => {
    for (const tenant of ['broken', 'whole'])
      await storeAnswers(clickhouse, madeAnswers(tenant, bigSkills.slice(0, 1), 8, 5));
    await redis.hset(activeModelsKey, 'broken', 7);
    const { code, err } = await fit(servers);
    assert.equal(code, 1);
    assert.match(err, /the fit of tenant broken failed.*model version 7 of tenant broken is missing/);
    assert.equal(await models.fetchActiveVersion('whole'), 1);
  });

  await t.test('reports invalid arguments, and a ClickHouse that does not respond', async () => {
    const env = { ...servers.env, CLICKHOUSE_URL: 'http://user:password@127.0.0.1:1/skilltrace' };
    const down = await fit({ ...servers, env });
    assert.deepEqual([down.code, down.out], [1, '']);
    assert.match(down.err, /^ClickHouse is unavailable: connection refused \(ECONNREFUSED\).*\n$/);
    for (const wrong of ['--threads 0', '--back --list', '--use x']) {
      const [option = '', value = ''] = wrong.split(' ');
      const { code, out, err } = await fit(servers, option, value);
      assert.deepEqual([code, out, err.includes(option)], [1, '', true], err);
    }
  });
});

test('Scheduled fits', async (t) => {
  const { env, clickhouse } = await startFitServers(t);
  const [redisUrl, clickhouseUrl] = [env.REDIS_URL ?? '', env.CLICKHOUSE_URL ?? ''];
  const redis = await redisOf(t, redisUrl);
  const models = createModelStore(redis);
  const endpoints = { redisUrl, clickhouseUrl, analystUrl: null };
  const options = { servesRequests: true };
  const dependencies = createFitDependencies({ redis, clickhouse }, endpoints, options, logger);
  const startFits = (everyMs: number, run: ScheduledRunsOptions['run']) =>
    startScheduledRuns(schedules.fit, { redisUrl, everyMs, run, logger });
  const someSkills = bigSkills.slice(0, 2);

  await t.test('run again in another process after theirs was killed', async (t) => {
    const module = new URL('../../src/jobs/scheduled-runs.js', import.meta.url).href;
    const script = `const { schedules, startScheduledRuns } = await import(process.argv[1]);
      const run = () => new Promise(() => process.stdout.write('running'));
      const logger = { error: () => undefined, warn: () => undefined, info: () => undefined, debug: () => undefined };
      startScheduledRuns(schedules.fit, { redisUrl: process.argv[2], everyMs: 86_400_000, run, logger });`;
    const args = ['--input-type=module', '-e', script, module, redisUrl];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    t.after(() => child.kill('SIGKILL'));
    await once(child.stdout, 'data', { signal: AbortSignal.timeout(120_000) });
    child.kill('SIGKILL');
    let runs = 0;
    const fits = startFits(86_400_000, async () => {
      runs += 1;
    });
    t.after(() => fits.close());
    await waitFor('the second run', () => runs === 1);
  });

  await t.test('fit each tenant with new answers', async (t) => {
    await storeAnswers(clickhouse, madeAnswers('first', someSkills, 8, 3));
    const fits = startFits(1000, (signal) => runFits(dependencies, { signal }));
    t.after(() => fits.close());
    await waitFor('version 1', async () => (await models.fetchActiveVersion('first')) === 1);
    await storeAnswers(clickhouse, madeAnswers('second', someSkills, 8, 4));
    await waitFor('the second tenant', async () => (await models.fetchActiveVersion('second')) === 1);
    assert.equal(await models.fetchActiveVersion('first'), 1);
    await fits.close();
    await startFits(0, async () => undefined).close();
  });

  await t.test('end when they are closed and leave a readable model', async (t) => {
    await storeAnswers(clickhouse, madeAnswers('closed', skills, 8, 5));
    let isRunning = false;
    const fits = startFits(1000, (signal) => {
      isRunning = true;
      return runFits(dependencies, { signal, tenant: 'closed' });
    });
    t.after(() => fits.close());
    await waitFor('the run', () => isRunning);
    await fits.close();
    const active = await models.fetchActiveVersion('closed');
    assert.equal((await models.read('closed', active)).version, active);
  });
});
