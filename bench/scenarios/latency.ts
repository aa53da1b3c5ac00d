import { inTurns, saturationOf } from '../bench.js';
import { figureOf } from '../goals.js';
import { usualTraffic } from '../load/traffic.js';
import type { Contestant } from '../measure.js';
import { latencyOf, Rounds } from '../rounds.js';
import {
  atItsPace,
  ledgerOf,
  measurementOf,
  peerContestant,
  type Scenario,
  serviceContestant,
} from '../scenario.js';
import { ratioSpread, spreadOf } from '../spread.js';

const name = 'latency';
const half = 0.5;
const curve = [0.25, half, 0.75, 0.9, 1, 1.1];

export const latency: Scenario = {
  name,
  about: 'open loop, single answers at shares of what each target does in a closed loop',
  long: false,
  run: async (bench) => {
    const [service, fastify] = await Promise.all([bench.service(), bench.peer('fastify')]);
    const ours = atItsPace(serviceContestant(service, name, usualTraffic));
    const contestants: readonly Contestant[] = [peerContestant(fastify, name, usualTraffic), ours];
    const { full, main, side } = bench.settings;
    const saturation = new Map<string, number>();
    for (const one of contestants)
      saturation.set(one.name, await saturationOf(bench, one, { ...side, rounds: 1 }));
    const mostOf = (target: string): number => saturation.get(target) as number;
    const curves = new Map<number, Rounds>();
    for (const share of full ? curve : [half]) {
      const paced = contestants.map((one) => ({ ...one, rate: share * mostOf(one.name) }));
      curves.set(share, await inTurns(bench, paced, main));
    }
    const atHalf = curves.get(half) ?? new Rounds();
    const ledger = await ledgerOf(ours);
    const measurements = contestants.map(({ name: target, drains }) =>
      measurementOf(target, atHalf.of(target), {
        throughput: spreadOf([mostOf(target)]),
        latencies: [...curves.values()].map((rounds) => latencyOf(rounds.of(target))),
        ledger: drains === null ? null : ledger,
      }),
    );
    const p99 = atHalf.p99('skilltrace');
    return {
      results: [{ measurements }],
      figures: [
        figureOf('p99', spreadOf(p99)),
        figureOf('p99Fastify', ratioSpread(p99, atHalf.p99('fastify'))),
        figureOf('lag', spreadOf(atHalf.lag('skilltrace'))),
      ],
    };
  },
};
