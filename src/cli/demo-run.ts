/** Imports the demo week by week, as if it had just happened, with a fit in the middle. */
import { setTimeout as sleep } from 'node:timers/promises';
import { fitParts } from '../app/consumers.js';
import type { Engine } from '../app/engine.js';
import type { TrackEvent } from '../contracts/tasks.js';
import type { DemoAnswer } from '../lab/demo/answers.js';
import { type DemoForecast, type DemoWeek, makeDemo } from '../lab/demo/demo.js';
import type { DemoSkill } from '../lab/demo/school.js';
import { grouped } from '../lab/report/numbers.js';
import { StartError, within } from '../lifecycle.js';
import { distinct, inParts, sumOf } from '../lists.js';
import { createFeeder } from '../services/import/feeder.js';
import { runFits } from '../services/models/fit-models.js';
import type { ImportRecord } from '../store/learners/import-store.js';
import { partitionOf } from '../store/redis/keys.js';
import { selectNumber } from '../warehouse/clickhouse/client.js';
import type { CommandContext } from './command.js';
import type { DemoArguments } from './demo.js';

interface DemoRun {
  readonly context: CommandContext;
  readonly args: DemoArguments;
  readonly engine: Engine;
  /** An engine whose threads know nothing of the tenant's model yet: they begin with the one in force. */
  readonly startAnother: () => Promise<Engine>;
  readonly record: ImportRecord;
  readonly signal: AbortSignal;
}

export type DemoSummary = NonNullable<Awaited<ReturnType<typeof runDemo>>>;

/** @returns null if a signal stopped it. @throws StartError */
export async function runDemo(run: DemoRun) {
  const { context, args, engine, startAnother, signal } = run;
  const since = performance.now();
  context.showProgress('making the school');
  const { skills, weeks } = makeDemo(args);
  await setSkills(engine, args.tenant, skills);
  const importer = createImporter(run, weeks);
  const middle = weeks.length >> 1;
  await importer.take(engine, weeks.slice(0, middle));
  if (!(await untilStored(run, { attempts: importer.figures.answers }))) return null;
  const parts = fitParts(engine, engine.endpoints, { beside: false }, context.logger);
  const onStep = (_: string, step: string): void => context.showProgress(`fit: ${step}`);
  const [fit] = await runFits(parts, { tenant: args.tenant, signal, onStep });
  if (signal.aborted) return null;
  await importer.take(await startAnother(), weeks.slice(middle));
  const { answers, goals, forecasts } = importer.figures;
  const rows = { attempts: answers, goal_changes: goals, served_forecasts: forecasts };
  if (!(await untilStored(run, rows))) return null;
  const learners = distinct(weeks.flatMap((week) => week.answers.map(({ userId }) => userId))).length;
  return {
    ...{ tenant: args.tenant, until: args.until, seed: args.seed },
    ...{ learners, answers, skills: skills.length, items: sumOf(skills.map(({ items }) => items.length)) },
    ...{ goals, forecasts, modelVersion: fit?.version ?? 0, fit: fit?.outcome ?? 'too_few' },
    fittedUntil: new Date(weeks[middle - 1]?.end ?? 0).toISOString(),
    seconds: (performance.now() - since) / 1000,
  };
}

async function setSkills({ catalogue }: Engine, tenant: string, skills: readonly DemoSkill[]): Promise<void> {
  for (const { id, name, section } of skills) {
    const setting = { name, section, weight: 1, parameters: null };
    const write = { skillId: id, setting, ifRevision: null };
    const { status } = await catalogue.put(tenant, write, Date.now());
    if (status !== 'written') throw new StartError('MAX_SKILLS_PER_TENANT leaves no room for the 40 skills');
  }
}

function createImporter({ context, args, record }: DemoRun, weeks: readonly DemoWeek[]) {
  const { closers, showProgress } = context;
  const { tenant } = args;
  const figures = { answers: 0, goals: 0, forecasts: 0 };
  const total = sumOf(weeks.map(({ answers }) => answers.length));
  let line = 0;

  async function take(engine: Engine, some: readonly DemoWeek[]): Promise<void> {
    const { compute, goals, partitions } = engine;
    const feeder = createFeeder({
      tracker: compute,
      importId: record.id,
      shards: partitions,
      shardOf: ({ userId }) => partitionOf(tenant, userId, partitions),
      settled: (counted) => {
        figures.answers += counted;
      },
    });
    closers.add('demo', (limitMs) => within(feeder.stop(), limitMs / 4));
    for (const week of some) {
      await feeder.push(week.answers.map((answer) => eventOf(answer, tenant, ++line)));
      await feeder.drain();
      if (closers.closing) return;
      for (const { userId, setting, at } of week.goals) {
        const { status } = await goals.write({ tenant, userId, setting, ifMatch: null, now: at });
        figures.goals += status === 'written' ? 1 : 0;
      }
      for (const one of week.forecasts) figures.forecasts += await forecast(engine, tenant, one, week.end);
      const day = new Date(week.end).toISOString().slice(0, 10);
      showProgress(`${day}: ${grouped(figures.answers)} of ${grouped(total)} answers`);
    }
  }

  return { take, figures };
}

const eventOf = (answer: DemoAnswer, tenant: string, importLine: number): TrackEvent => {
  const { sentAt: _, ...sent } = answer;
  return { ...sent, tenant, occurredAtText: null, receivedAt: Date.now(), importLine };
};

const learnersOfOrder = 8;

/** Forecasts as they would have been served at that moment: only answers of before are counted yet. @returns how many */
async function forecast({ compute }: Engine, tenant: string, { userIds, days }: DemoForecast, at: number) {
  const options = { tenant, days, level: 0.8, locale: 'en', at } as const;
  const orders = inParts(userIds, learnersOfOrder).map((part) =>
    compute.forecast({ ...options, userIds: part }, () => undefined),
  );
  const results = (await Promise.all(orders)).flat();
  for (const result of results) if (result instanceof Error) throw result;
  return results.filter((result) => result !== null).length;
}

const pollMs = 100;
const maxStandstillMs = 60_000;

/** Waits until ClickHouse has so many rows of the tenant in each table. @returns false if a signal came */
async function untilStored(run: DemoRun, rows: Readonly<Record<string, number>>): Promise<boolean> {
  const { context, args, engine } = run;
  const { closers, showProgress } = context;
  const params = { tenant: args.tenant };
  for (const [table, wanted] of Object.entries(rows)) {
    const query = `SELECT toUInt32(count()) FROM ${table} WHERE tenant = {tenant:String}`;
    let [seen, since] = [-1, performance.now()];
    for (;;) {
      if (closers.closing) return false;
      const found = await selectNumber(engine.clickhouse, query, { params });
      if (found >= wanted) break;
      if (found !== seen) [seen, since] = [found, performance.now()];
      if (performance.now() - since > maxStandstillMs)
        throw new StartError(
          `${grouped(wanted - found)} rows of ${table} do not reach ClickHouse; --reset removes what is there`,
        );
      showProgress(`${grouped(wanted - found)} rows of ${table} wait for ClickHouse`);
      await sleep(pollMs);
    }
  }
  return true;
}
