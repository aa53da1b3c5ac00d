import { createFitDependencies } from '../../app/processes/consumers.js';
import type { Engine } from '../../app/startup/engine.js';
import type { TrackEvent } from '../../contracts/answers/track-task.js';
import type { DemoAnswer } from '../../lab/demo/answers.js';
import { type DemoOptions, type DemoWeek, generateDemo } from '../../lab/demo/generate-demo.js';
import { formatNumber } from '../../lab/report/format.js';
import { StartError, waitAtMost } from '../../lifecycle.js';
import { computeSum, distinct, splitIntoParts } from '../../lists.js';
import { replaceGroup } from '../../services/groups/manage-groups.js';
import { createFeeder } from '../../services/import/feeder.js';
import { calibrateTenants } from '../../services/models/calibrate-tenants.js';
import { runFits } from '../../services/models/fit-models.js';
import { partitionOf } from '../../store/redis/keys.js';
import { selectNumber } from '../../warehouse/clickhouse/client.js';
import type { CommandContext } from '../support/command.js';
import { waitUntilZero } from './remove-demo.js';

interface DemoRun {
  readonly context: CommandContext;
  readonly args: DemoOptions & { readonly tenant: string };
  readonly engine: Engine;
  /** The threads of a new engine load the current model. */
  readonly restartEngine: () => Promise<Engine>;
  readonly importId: string;
}

/** Shares of the weeks before each fit. Two fits give the model page two versions to compare. */
const fitShares = [1 / 2, 3 / 4];

/** @returns null after a signal @throws StartError */
export async function runDemo(run: DemoRun) {
  const { context, args, engine, restartEngine } = run;
  const { tenant } = args;
  const since = performance.now();
  context.showProgress('generating the school');
  const { skills, weeks, from: startsAt, groups, profiles } = generateDemo(args);
  for (const { id, name, section } of skills) {
    const setting = { name, section, weight: 1, parameters: null };
    const write = { skillId: id, setting, ifRevision: null };
    const { status } = await engine.catalogue.writeSkill(tenant, write, Date.now());
    if (status !== 'written')
      throw new StartError('The demo needs 40 skills. Increase MAX_SKILLS_PER_TENANT');
  }
  for (const { groupId, userIds, ...setting } of groups)
    await replaceGroup(engine.groups, tenant, groupId, setting, userIds, startsAt);
  for (const { userId, ...profile } of profiles) await engine.profiles.write(tenant, userId, profile);
  const counts = {
    ...{ attempts: 0, goal_changes: 0, served_forecasts: 0, group_changes: groups.length },
    group_member_changes: computeSum(groups.map(({ userIds }) => userIds.length)),
    learner_profile_changes: profiles.length,
  };
  const fits = fitShares.map((share) => Math.floor(weeks.length * share));
  let [version, from, current] = [0, 0, engine];
  for (const until of fits) {
    await importWeeks(run, current, weeks.slice(from, until), counts);
    if (!(await waitUntilStored(run, counts))) return null;
    version = await fitDemo(run, weeks[until - 1]?.end ?? 0);
    from = until;
    current = await restartEngine();
  }
  await importWeeks(run, current, weeks.slice(from), counts);
  if (!(await waitUntilStored(run, counts))) return null;
  return {
    ...{ tenant, until: args.until, seed: args.seed, skills: skills.length, modelVersion: version },
    learners: distinct(weeks.flatMap(({ answers }) => answers.map(({ userId }) => userId))).length,
    groups: groups.length,
    ...{ answers: counts.attempts, goals: counts.goal_changes, forecasts: counts.served_forecasts },
    fittedUntil: new Date(weeks[from - 1]?.end ?? 0).toISOString(),
    seconds: (performance.now() - since) / 1000,
  };
}

/** Also recalibrates the intervals of later weeks. @returns the current version */
async function fitDemo({ context, args: { tenant }, engine }: DemoRun, end: number): Promise<number> {
  const abort = new AbortController();
  context.closers.add('fit', () => abort.abort());
  const parts = createFitDependencies(engine, engine.endpoints, { servesRequests: false }, context.logger);
  const onStep = (_: string, step: string): void => context.showProgress(`fit: ${step}`);
  const [fitted] = await runFits(parts, { tenant, signal: abort.signal, onStep });
  await calibrateTenants(parts, end, abort.signal, [tenant]);
  return fitted?.version ?? 0;
}

type RowCounts = Record<'attempts' | 'goal_changes' | 'served_forecasts', number>;

async function importWeeks(run: DemoRun, engine: Engine, weeks: readonly DemoWeek[], counts: RowCounts) {
  const { compute, goals, partitions } = engine;
  const { context, importId } = run;
  const { closers, showProgress } = context;
  const { tenant } = run.args;
  const shardOf = ({ userId }: { readonly userId: string }) => partitionOf(tenant, userId, partitions);
  const sharding = { shards: partitions, shardOf };
  const feeder = createFeeder({ tracker: compute, importId, ...sharding, onCounted: () => undefined });
  closers.add('demo', (limitMs) => waitAtMost(feeder.stop(), limitMs / 4));
  for (const week of weeks) {
    await feeder.push(
      week.answers.map((answer, i) => toImportEvent(answer, tenant, counts.attempts + i + 1)),
    );
    await feeder.drain();
    if (closers.closing) return;
    counts.attempts += week.answers.length;
    for (const { userId, setting, at } of week.goals) {
      const { status } = await goals.write({ tenant, userId, setting, ifMatch: null, now: at });
      counts.goal_changes += status === 'written' ? 1 : 0;
    }
    counts.served_forecasts += await forecastWeek(compute, tenant, week);
    showProgress(
      `${new Date(week.end).toISOString().slice(0, 10)}: ${formatNumber(counts.attempts)} answers`,
    );
  }
}

const toImportEvent = (
  { sentAt: _, ...sent }: DemoAnswer,
  tenant: string,
  importLine: number,
): TrackEvent => ({
  listsSkills: false,
  ...sent,
  tenant,
  importLine,
  occurredAtText: null,
  receivedAt: Date.now(),
});

const learnersPerRequest = 8;

/** Forecasts from the answers imported so far. @returns number of forecasts */
async function forecastWeek({ forecast }: Engine['compute'], tenant: string, { forecasts, end }: DemoWeek) {
  const requests = forecasts.flatMap(({ days, userIds }) =>
    splitIntoParts(userIds, learnersPerRequest).map((some) => ({ tenant, userIds: some, days, at: end })),
  );
  const options = { level: 0.8, locale: 'en' } as const;
  const all = await Promise.all(requests.map((order) => forecast({ ...options, ...order }, () => undefined)));
  for (const result of all.flat()) if (result instanceof Error) throw result;
  return all.flat().filter((result) => result !== null).length;
}

/** @returns false after a signal */
async function waitUntilStored(
  { context, args: { tenant }, engine }: DemoRun,
  counts: RowCounts,
): Promise<boolean> {
  const missing = Object.entries(counts).map(
    ([table, n]) => `greatest(0, ${n} - (${buildCountQuery(table)}))`,
  );
  const query = `SELECT ${missing.join(' + ')}`;
  const count = () => selectNumber(engine.clickhouse, query, { params: { tenant } });
  return waitUntilZero(context, 'rows waiting for ClickHouse', count);
}

const buildCountQuery = (table: string): string =>
  `SELECT count() FROM ${table} WHERE tenant = {tenant:String}`;
