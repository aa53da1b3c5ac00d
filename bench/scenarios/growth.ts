import { type Bench, inTurns, ownService, saturationOf } from '../bench.js';
import { figureOf } from '../goals.js';
import { usualTraffic } from '../load/traffic.js';
import { Rounds } from '../rounds.js';
import {
  ledgerOf,
  measurementOf,
  type Scenario,
  type ScenarioFinding,
  type ServiceContestant,
  serviceContestant,
} from '../scenario.js';
import { seedAnswers, seedOf } from '../seed.js';
import { ratioSpread } from '../spread.js';

const name = 'growth';
const few = 1000;
const sizes = [few, 10_000, 100_000, 1_000_000];

/** The small service takes turns with the growing one, for a fair comparison. */
export const growth: Scenario = {
  name,
  about: 'known learners with a skill each, at half of what the service can do with the fewest',
  long: true,
  run: async (bench) => {
    const empty = await startEmpty(bench, 'small');
    let large = await startEmpty(bench, 'large');
    const small = await grow(bench, empty, few);
    const { main } = bench.settings;
    const rate = (await saturationOf(bench, small, { ...main, rounds: 1 })) / 2;
    const results: ScenarioFinding[] = [];
    let last = new Rounds();
    for (const learners of sizes) {
      large = await grow(bench, large, learners);
      last = await inTurns(
        bench,
        [small, large].map((one) => ({ ...one, rate })),
        main,
      );
      const more = { throughput: null, ledger: await ledgerOf(large) };
      const measurements = [measurementOf('skilltrace', last.of('large'), more)];
      results.push({ axis: { label: 'learners', value: learners }, measurements });
    }
    await ledgerOf(small);
    return { results, figures: [figureOf('growth', ratioSpread(last.cpu('large'), last.cpu('small')))] };
  },
};

async function startEmpty(bench: Bench, as: 'small' | 'large'): Promise<ServiceContestant> {
  const service = await ownService(bench, `growth-${as}`);
  const traffic = { ...usualTraffic, order: 'one skill', learners: 0 } as const;
  return { ...serviceContestant(service, name, traffic), name: as };
}

async function grow(
  bench: Bench,
  contestant: ServiceContestant,
  learners: number,
): Promise<ServiceContestant> {
  const known = contestant.traffic.learners;
  bench.progress(`${learners - known} learners are made`);
  const seed = seedOf(learners, usualTraffic.skills);
  await seedAnswers(contestant, learners - known, (i) => seed(known + i));
  return { ...contestant, traffic: { ...contestant.traffic, learners } };
}
