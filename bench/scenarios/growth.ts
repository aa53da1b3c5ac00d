/** What an answer costs as the service knows more learners, at the same offered load. */
import { type Bench, inTurns, saturationOf, withClosers } from '../bench.js';
import { figureOf } from '../goals.js';
import { newTally, type Tally } from '../ledger.js';
import { type Traffic, usualTraffic } from '../load/traffic.js';
import type { Contestant } from '../measure.js';
import type { ScenarioResult } from '../results.js';
import { Rounds } from '../rounds.js';
import { type Findings, ledgerOf, measurementOf, type Scenario, serviceContestant } from '../scenario.js';
import { seedAnswers, seedOf } from '../seed.js';
import type { Service } from '../service.js';
import { ratioSpread } from '../spread.js';

const name = 'growth';
const about = 'known learners with a skill each, at half of what the service can do with the fewest';
const few = 1000;
const sizes = [few, 10_000, 100_000, 1_000_000];

/** Two services: one stays small, one grows; they take turns, so that the machine is the same for both. */
export const growth: Scenario = {
  name,
  about,
  long: true,
  run: (bench) =>
    withClosers(bench, async (closers) => {
      const small = populationOf(await bench.ownService('growth-small', closers));
      const large = populationOf(await bench.ownService('growth-large', closers));
      await grow(bench, small, few);
      const turns = { scenario: name, pace: { rounds: 1, seconds: bench.settings.main.seconds } };
      const saturation = await saturationOf(bench, contestantOf(small, 'small'), turns);
      return measureSizes(bench, small, large, saturation / 2);
    }),
};

/** A service with the learners that it knows. */
interface Population {
  readonly service: Service;
  readonly tally: Tally;
  learners: number;
}

const populationOf = (service: Service): Population => ({ service, tally: newTally(), learners: 0 });

const trafficOf = ({ learners }: Population): Traffic => ({ ...usualTraffic, order: 'one skill', learners });

const contestantOf = (population: Population, as: string): Contestant => ({
  ...serviceContestant(population.service, name, trafficOf(population), population.tally),
  name: as,
});

/** An answer of each learner who is not known yet. */
async function grow(bench: Bench, population: Population, learners: number): Promise<void> {
  const { service, tally, learners: known } = population;
  bench.progress(`${name}: ${learners - known} learners are made`);
  const seed = seedOf(learners, usualTraffic.skills);
  await seedAnswers(service, name, tally, learners - known, (i) => seed(known + i));
  population.learners = learners;
}

async function measureSizes(
  bench: Bench,
  small: Population,
  large: Population,
  rate: number,
): Promise<Findings> {
  const results: ScenarioResult[] = [];
  let last = new Rounds();
  for (const learners of sizes) {
    await grow(bench, large, learners);
    const contestants = [contestantOf(small, 'small'), contestantOf(large, 'large')];
    const rates = new Map(contestants.map((one) => [one.name, rate]));
    last = await inTurns(bench, contestants, { scenario: name, pace: bench.settings.main, rates });
    const ledger = await ledgerOf(large.service, name, trafficOf(large), large.tally);
    results.push({
      name,
      about,
      axis: { label: 'learners', value: learners },
      unit: 'answer',
      measurements: [measurementOf('skilltrace', last.of('large'), { throughput: null, ledger })],
    });
  }
  await ledgerOf(small.service, name, trafficOf(small), small.tally);
  return { results, figures: [figureOf('growth', ratioSpread(last.cpu('large'), last.cpu('small')))] };
}
