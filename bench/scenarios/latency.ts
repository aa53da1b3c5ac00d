/** Latency in an open loop, at fixed shares of what each target can do. */
import { inTurns, saturationOf } from '../bench.js';
import { figureOf } from '../goals.js';
import { newTally } from '../ledger.js';
import { usualTraffic } from '../load/traffic.js';
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
const about = 'open loop, single answers at shares of what each target does in a closed loop';
const half = 0.5;
const curve = [0.25, half, 0.75, 0.9, 1, 1.1];

export const latency: Scenario = {
  name,
  about,
  long: false,
  run: async (bench) => {
    const [service, fastify] = await Promise.all([bench.service(), bench.peer('fastify')]);
    const tally = newTally();
    const contestants = [
      peerContestant(fastify, name, usualTraffic),
      atItsPace(serviceContestant(service, name, usualTraffic, tally), service),
    ];
    const { full, main, side } = bench.settings;
    const saturation = new Map<string, number>();
    const once = { scenario: name, pace: { rounds: 1, seconds: side.seconds } };
    for (const one of contestants) saturation.set(one.name, await saturationOf(bench, one, once));
    const curves = new Map<number, Rounds>();
    for (const share of full ? curve : [half]) {
      const rates = new Map([...saturation].map(([target, most]) => [target, share * most]));
      curves.set(share, await inTurns(bench, contestants, { scenario: name, pace: main, rates }));
    }
    const atHalf = curves.get(half) ?? new Rounds();
    const ledger = await ledgerOf(service, name, usualTraffic, tally);
    const measurements = contestants.map(({ name: target, drains }) =>
      measurementOf(target, atHalf.of(target), {
        throughput: spreadOf([saturation.get(target) as number]),
        latencies: [...curves.values()].map((rounds) => latencyOf(rounds.of(target))),
        ledger: drains === null ? null : ledger,
      }),
    );
    const p99 = atHalf.p99('skilltrace');
    return {
      results: [{ name, about, axis: null, unit: 'answer', measurements }],
      figures: [
        figureOf('p99', spreadOf(p99)),
        figureOf('p99Fastify', ratioSpread(p99, atHalf.p99('fastify'))),
        figureOf('lag', spreadOf(atHalf.lag('skilltrace'))),
      ],
    };
  },
};
