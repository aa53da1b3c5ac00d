/** What analysts with heavy queries cost those who answer: the same steady load without and with four of them, in turns. */
import { setTimeout as sleep } from 'node:timers/promises';
import { StartError } from '../../src/lifecycle.js';
import { inTurns, withClosers } from '../bench.js';
import { figureOf } from '../goals.js';
import { newTally } from '../ledger.js';
import { usualTraffic } from '../load/traffic.js';
import type { Contestant, Sample } from '../measure.js';
import { acceptingParts } from '../parts.js';
import type { Figure } from '../results.js';
import { atItsPace, cpuSums, ledgerOf, measurementOf, type Scenario } from '../scenario.js';
import type { Service } from '../service.js';
import { ratioSpread, spreadOf } from '../spread.js';
import { latencyOf } from './latency.js';

const name = 'analysts-load';
const about =
  'open loop with 1000 single answers a second, without and with four analysts who ask heavy queries of 2,000,000 answers';
const rate = 1000;
const analysts = 4;
/** Short turns and many: the machine's own noise lasts longer. */
const pace = { rounds: 16, seconds: 5 };

/** Of all learners of a tenant: sums over answers, views with joins, a pull of every row. */
const queries = [
  `SELECT user_id, skill_id, count(), avg(is_correct), quantiles(.1, .5, .9)(time_spent_seconds), uniqExact(toDate(occurred_at))
   FROM attempts WHERE tenant = 'school' GROUP BY user_id, skill_id ORDER BY count() DESC LIMIT 100`,
  "SELECT * FROM skill_velocity WHERE tenant = 'school'",
  "SELECT * FROM cohort_skill_weekly WHERE tenant = 'school'",
  "SELECT * FROM learner_skill_daily WHERE tenant = 'school'",
];

export const analystsLoad: Scenario = {
  name,
  about,
  long: true,
  run: (bench) =>
    withClosers(bench, async (closers) => {
      const service = await bench.ownService(name, closers);
      bench.progress(`${name}: rows are made`);
      await makeRows(service);
      const tally = newTally();
      const alone = atItsPace(service, name, usualTraffic, tally);
      const beside: Contestant = { ...alone, name: 'with four analysts', beside: () => ask(service) };
      const rates = new Map([alone, beside].map((one) => [one.name, rate]));
      const samples = await inTurns(bench, [alone, beside], {
        scenario: name,
        pace,
        rates,
      });
      const ledger = await ledgerOf(service, name, usualTraffic, tally);
      const measurements = [...samples].map(([target, list]) =>
        measurementOf(target, list, { throughput: null, latencies: [latencyOf(list)], ledger }),
      );
      const figures = figuresOf(samples.get(alone.name) ?? [], samples.get(beside.name) ?? []);
      return { results: [{ name, about, axis: null, unit: 'answer', measurements }], figures };
    }),
};

function figuresOf(alone: readonly Sample[], beside: readonly Sample[]): Figure[] {
  const p99 = (samples: readonly Sample[]): number[] => samples.map(({ load }) => load.latency?.p99 ?? 0);
  const cpu = (samples: readonly Sample[]): number[] => cpuSums(samples, acceptingParts);
  const lag = (samples: readonly Sample[]): number[] => samples.map(({ pipeline }) => pipeline?.lag ?? 0);
  const lagAlone = lag(alone);
  return [
    figureOf('analystsP99', ratioSpread(p99(beside), p99(alone))),
    figureOf('analystsCpu', ratioSpread(cpu(beside), cpu(alone))),
    figureOf('analystsLag', spreadOf(lag(beside).map((value, round) => value - (lagAlone[round] as number)))),
  ];
}

const learners = 4000;
const learnersAtOnce = 400;

/** 25 days of 20 answers on 4 of 100 skills for each learner. */
async function makeRows({ clickhouse }: Service): Promise<void> {
  for (let from = 0; from < learners; from += learnersAtOnce)
    await clickhouse.command({
      query: `
        INSERT INTO attempts (tenant, user_id, skill_id, is_correct, time_spent_seconds, occurred_at, received_at, learner_seq,
          mastery_before, mastery_after, p_correct, learner_version, partition_id, outbox_ms, outbox_seq)
        SELECT 'school', concat('learner-', toString(${from} + intDiv(number, 500)) AS learner) AS user_id,
          concat('skill-', toString((cityHash64(learner) + number % 4 * 25) % 100)), cityHash64(number, learner) % 10 < 6,
          5 + cityHash64(number) % 90, now64(3) - toIntervalDay(30 - intDiv(number % 500, 20)) AS at, at, 1 + number % 500,
          (number % 500) / 600, (number % 500 + 1) / 600, 0.6, 1 + number % 500, cityHash64(learner) % 16, 1, ${from} * 500 + number
        FROM numbers(${500 * learnersAtOnce})`,
    });
  // Merges of what was inserted are not those of the load.
  await sleep(10_000);
}

/** Analysts ask one query after another until they are ended. */
function ask({ analystUrl }: Service): () => Promise<void> {
  const over = new AbortController();
  const asking = Array.from({ length: analysts }, async (_, first) => {
    for (let n = first; !over.signal.aborted; n++)
      await answerOf(analystUrl, queries[n % queries.length] as string, over.signal);
  });
  const all = Promise.all(asking);
  // A failure is told at the end, when it is awaited.
  all.catch(() => undefined);
  return async () => {
    over.abort();
    await all;
  };
}

async function answerOf(analystUrl: string, query: string, over: AbortSignal): Promise<void> {
  const { origin, username, password } = new URL(analystUrl);
  const authorization = `Basic ${btoa(`${username}:${password}`)}`;
  try {
    const response = await fetch(`${origin}/`, {
      method: 'POST',
      body: query,
      headers: { authorization },
      signal: over,
    });
    if (response.status !== 200) throw new StartError(`an analyst: ${await response.text()}`);
    for await (const _ of response.body ?? []);
  } catch (error) {
    if (!over.aborted) throw error;
  }
}
