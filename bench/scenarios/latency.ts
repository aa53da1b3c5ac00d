import { usualTraffic } from '../load/traffic.js';
import { measureInTurns, measureSaturation } from '../measurement/bench.js';
import type { Contestant } from '../measurement/measure.js';
import { computeLatency, Rounds } from '../measurement/rounds.js';
import {
  buildMeasurement,
  checkTenantLedger,
  createPeerContestant,
  createServiceContestant,
  type Scenario,
  withScheduledDrain,
} from '../measurement/scenario.js';
import { createGoalFigure } from '../results/goals.js';
import { computeRatioSpread, computeSpread } from '../results/spread.js';

const name = 'latency';
const halfShare = 0.5;
const rateShares = [0.25, halfShare, 0.75, 0.9, 1, 1.1];

export const latency: Scenario = {
  name,
  about: 'single answers, open loop at shares of the closed-loop saturation of each target',
  isLong: false,
  run: async (bench) => {
    const [service, fastify] = await Promise.all([bench.service(), bench.peer('fastify')]);
    const ours = withScheduledDrain(createServiceContestant(service, name, usualTraffic));
    const contestants: readonly Contestant[] = [createPeerContestant(fastify, name, usualTraffic), ours];
    const { full, main, side } = bench.settings;
    const saturation = new Map<string, number>();
    for (const one of contestants)
      saturation.set(one.name, await measureSaturation(bench, one, { ...side, rounds: 1 }));
    const mostOf = (target: string): number => saturation.get(target) as number;
    const curves = new Map<number, Rounds>();
    for (const share of full ? rateShares : [halfShare]) {
      const paced = contestants.map((one) => ({ ...one, rate: share * mostOf(one.name) }));
      curves.set(share, await measureInTurns(bench, paced, main));
    }
    const atHalf = curves.get(halfShare) ?? new Rounds();
    const ledger = await checkTenantLedger(ours);
    const measurements = contestants.map(({ name: target, drains }) =>
      buildMeasurement(target, atHalf.getSamples(target), {
        throughput: computeSpread([mostOf(target)]),
        latencies: [...curves.values()].map((rounds) => computeLatency(rounds.getSamples(target))),
        ledger: drains === null ? null : ledger,
      }),
    );
    const p99 = atHalf.p99('skilltrace');
    return {
      results: [{ measurements }],
      figures: [
        createGoalFigure('p99', computeSpread(p99)),
        createGoalFigure('p99Fastify', computeRatioSpread(p99, atHalf.p99('fastify'))),
        createGoalFigure('lag', computeSpread(atHalf.lag('skilltrace'))),
      ],
    };
  },
};
