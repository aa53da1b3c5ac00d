import { setTimeout as sleep } from 'node:timers/promises';
import { indices } from '../../src/lists.js';
import { startDedicatedService } from '../measurement/bench.js';
import {
  type LoadScenario,
  runLoadScenario,
  type Scenario,
  withScheduledDrain,
} from '../measurement/scenario.js';
import { createGoalFigure } from '../results/goals.js';
import { computeRatioSpread, computeSpread } from '../results/spread.js';
import type { Service } from '../targets/service.js';
import { generateAnswers, queryAsAnalyst, type School } from './clickhouse-school.js';

const rate = 1000;
const analysts = 4;
const serviceName = 'skilltrace';
const analystsName = 'with four analysts';
const school: School = { tenant: 'school', learners: 4000, days: 25, perDay: 20, perSkill: 5 };
/** Many short turns, because noise lasts longer than a turn. */
const pace = { rounds: 16, seconds: 5 };

const queries = [
  `SELECT user_id, skill_id, count(), avg(is_correct), quantiles(.1, .5, .9)(time_spent_seconds), uniqExact(toDate(occurred_at))
   FROM attempts WHERE tenant = 'school' GROUP BY user_id, skill_id ORDER BY count() DESC LIMIT 100`,
  "SELECT * FROM skill_velocity WHERE tenant = 'school'",
  "SELECT * FROM cohort_skill_weekly WHERE tenant = 'school'",
  "SELECT * FROM learner_skill_daily WHERE tenant = 'school'",
];

const loads: LoadScenario = {
  name: 'analysts-load',
  about:
    'open loop with 1000 single answers per second, without and with four analysts that run heavy queries on 2,000,000 answers',
  isLong: true,
  pace,
  contestants: (usual) => {
    const alone = { ...withScheduledDrain(usual), rate };
    return [alone, { ...alone, name: analystsName, beside: (end) => runQueries(usual.drains, end) }];
  },
  figures: (rounds) => {
    const p99 = computeRatioSpread(rounds.p99(analystsName), rounds.p99(serviceName));
    const cpu = computeRatioSpread(rounds.cpu(analystsName), rounds.cpu(serviceName));
    const lagAlone = rounds.lag(serviceName);
    const added = rounds.lag(analystsName).map((lag, round) => lag - (lagAlone[round] as number));
    return [
      createGoalFigure('analystsP99', p99),
      createGoalFigure('analystsCpu', cpu),
      createGoalFigure('analystsLag', computeSpread(added)),
    ];
  },
};

export const analystsLoad: Scenario = {
  ...loads,
  run: async (bench) => {
    const service = await startDedicatedService(bench, loads.name);
    bench.progress('generating rows');
    await generateAnswers(service.clickhouse, school);
    // Merges of the inserted rows must end before the load.
    await sleep(10_000);
    return runLoadScenario(bench, service, loads);
  },
};

async function runQueries({ analystUrl }: Service, end: AbortSignal): Promise<void> {
  const runInTurn = async (first: number): Promise<void> => {
    for (let n = first; !end.aborted; n++)
      await queryAsAnalyst(analystUrl, queries[n % queries.length] as string, {}, end).catch(
        (error: unknown) => {
          if (!end.aborted) throw error;
        },
      );
  };
  await Promise.all(indices(analysts).map(runInTurn));
}
