/** What analysts with heavy queries cost those who answer: the same steady load without and with four of them, in turns. */
import { setTimeout as sleep } from 'node:timers/promises';
import { inTurns, withClosers } from '../bench.js';
import { figureOf } from '../goals.js';
import { newTally } from '../ledger.js';
import { usualTraffic } from '../load/traffic.js';
import type { Contestant, Sample } from '../measure.js';
import { acceptingParts } from '../parts.js';
import type { Figure } from '../results.js';
import { atItsPace, cpuSums, ledgerOf, measurementOf, type Scenario } from '../scenario.js';
import { askAsAnalyst, makeAnswers, type School } from '../school.js';
import type { Service } from '../service.js';
import { ratioSpread, spreadOf } from '../spread.js';
import { latencyOf } from './latency.js';

const name = 'analysts-load';
const about =
  'open loop with 1000 single answers a second, without and with four analysts who ask heavy queries of 2,000,000 answers';
const rate = 1000;
const analysts = 4;
const school: School = { tenant: 'school', learners: 4000, days: 25, perDay: 20, perSkill: 5 };
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
      await makeAnswers(service.clickhouse, school);
      // Merges of what was inserted are not those of the load.
      await sleep(10_000);
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

/** Analysts ask one query after another until they are ended. */
function ask({ analystUrl }: Service): () => Promise<void> {
  const over = new AbortController();
  const asking = Array.from({ length: analysts }, async (_, first) => {
    for (let n = first; !over.signal.aborted; n++)
      await askAsAnalyst(analystUrl, queries[n % queries.length] as string, {}, over.signal).catch(
        (error: unknown) => {
          if (!over.signal.aborted) throw error;
        },
      );
  });
  const all = Promise.all(asking);
  // A failure is told at the end, when it is awaited.
  all.catch(() => undefined);
  return async () => {
    over.abort();
    await all;
  };
}
