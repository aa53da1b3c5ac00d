import { usualTraffic } from '../load/traffic.js';
import {
  type Bench,
  measureInTurns,
  measureSaturation,
  startDedicatedService,
} from '../measurement/bench.js';
import { Rounds } from '../measurement/rounds.js';
import {
  buildMeasurement,
  checkTenantLedger,
  createServiceContestant,
  type Scenario,
  type ScenarioFinding,
  type ServiceContestant,
} from '../measurement/scenario.js';
import { createAnswerGenerator, seedAnswers } from '../measurement/seed.js';
import { createGoalFigure } from '../results/goals.js';
import { computeRatioSpread } from '../results/spread.js';

const name = 'growth';
const fewestLearners = 1000;
const sizes = [fewestLearners, 10_000, 100_000, 1_000_000];

/** The small service takes turns with the growing one, for a fair comparison. */
export const growth: Scenario = {
  name,
  about: '1000 to 1,000,000 learners with one skill each, at half of the saturation with 1000 learners',
  isLong: true,
  run: async (bench) => {
    const empty = await startEmpty(bench, 'small');
    let large = await startEmpty(bench, 'large');
    const small = await addLearners(bench, empty, fewestLearners);
    const { main } = bench.settings;
    const rate = (await measureSaturation(bench, small, { ...main, rounds: 1 })) / 2;
    const results: ScenarioFinding[] = [];
    let last = new Rounds();
    for (const learners of sizes) {
      large = await addLearners(bench, large, learners);
      last = await measureInTurns(
        bench,
        [small, large].map((one) => ({ ...one, rate })),
        main,
      );
      const more = { ledger: await checkTenantLedger(large) };
      const measurements = [buildMeasurement('skilltrace', last.getSamples('large'), more)];
      results.push({ axis: { label: 'learners', value: learners }, measurements });
    }
    await checkTenantLedger(small);
    return {
      results,
      figures: [createGoalFigure('growth', computeRatioSpread(last.cpu('large'), last.cpu('small')))],
    };
  },
};

async function startEmpty(bench: Bench, as: 'small' | 'large'): Promise<ServiceContestant> {
  const service = await startDedicatedService(bench, `growth-${as}`);
  const traffic = { ...usualTraffic, order: 'one skill', learners: 0 } as const;
  return { ...createServiceContestant(service, name, traffic), name: as };
}

async function addLearners(
  bench: Bench,
  contestant: ServiceContestant,
  learners: number,
): Promise<ServiceContestant> {
  const existing = contestant.traffic.learners;
  bench.progress(`generating ${learners - existing} learners`);
  const seed = createAnswerGenerator(learners, usualTraffic.skills);
  await seedAnswers(contestant, learners - existing, (i) => seed(existing + i));
  return { ...contestant, traffic: { ...contestant.traffic, learners } };
}
