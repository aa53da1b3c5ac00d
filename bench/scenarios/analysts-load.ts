import { setTimeout as sleep } from 'node:timers/promises';
import { indices } from '../../src/lists.js';
import { ownService } from '../bench.js';
import { figureOf } from '../goals.js';
import { atItsPace, type Loads, measureLoads, type Scenario } from '../scenario.js';
import { askAsAnalyst, makeAnswers, type School } from '../school.js';
import type { Service } from '../service.js';
import { ratioSpread, spreadOf } from '../spread.js';

const rate = 1000;
const analysts = 4;
const ours = 'skilltrace';
const withAnalysts = 'with four analysts';
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

const loads: Loads = {
  name: 'analysts-load',
  about:
    'open loop with 1000 single answers a second, without and with four analysts who ask heavy queries of 2,000,000 answers',
  long: true,
  pace,
  contestants: (usual) => {
    const alone = { ...atItsPace(usual), rate };
    return [alone, { ...alone, name: withAnalysts, beside: (end) => ask(usual.drains, end) }];
  },
  figures: (rounds) => {
    const p99 = ratioSpread(rounds.p99(withAnalysts), rounds.p99(ours));
    const cpu = ratioSpread(rounds.cpu(withAnalysts), rounds.cpu(ours));
    const lagAlone = rounds.lag(ours);
    const added = rounds.lag(withAnalysts).map((lag, round) => lag - (lagAlone[round] as number));
    return [
      figureOf('analystsP99', p99),
      figureOf('analystsCpu', cpu),
      figureOf('analystsLag', spreadOf(added)),
    ];
  },
};

export const analystsLoad: Scenario = {
  ...loads,
  run: async (bench) => {
    const service = await ownService(bench, loads.name);
    bench.progress('rows are made');
    await makeAnswers(service.clickhouse, school);
    // Merges of the inserted rows must end before the load.
    await sleep(10_000);
    return measureLoads(bench, service, loads);
  },
};

async function ask({ analystUrl }: Service, end: AbortSignal): Promise<void> {
  const askInTurn = async (first: number): Promise<void> => {
    for (let n = first; !end.aborted; n++)
      await askAsAnalyst(analystUrl, queries[n % queries.length] as string, {}, end).catch(
        (error: unknown) => {
          if (!end.aborted) throw error;
        },
      );
  };
  await Promise.all(indices(analysts).map(askInTurn));
}
