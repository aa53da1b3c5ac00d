/** Latency in an open loop, at fixed shares of what each target can do. */
import { type Bench, inTurns } from '../bench.js';
import { figureOf } from '../goals.js';
import { newTally } from '../ledger.js';
import type { Percentiles } from '../load/plan.js';
import { usualTraffic } from '../load/traffic.js';
import { type Contestant, measure, type Sample } from '../measure.js';
import type { Figure, Latency } from '../results.js';
import { atItsPace, ledgerOf, measurementOf, peerContestant, type Scenario } from '../scenario.js';
import { ratioSpread, spreadOf } from '../spread.js';

const name = 'latency';
const about = 'open loop, single answers at shares of what each target does in a closed loop';
const half = 0.5;
const curve = [0.25, half, 0.75, 0.9, 1, 1.1];

/** What was measured of each target, by the share of its saturation. */
type Curves = ReadonlyMap<number, ReadonlyMap<string, readonly Sample[]>>;

export const latency: Scenario = {
  name,
  about,
  long: false,
  run: async (bench) => {
    const [service, fastify] = await Promise.all([bench.service(), bench.peer('fastify')]);
    const tally = newTally();
    const contestants = [
      peerContestant(fastify, name, usualTraffic),
      atItsPace(service, name, usualTraffic, tally),
    ];
    const saturation = await saturations(bench, contestants);
    const curves = new Map<number, ReadonlyMap<string, readonly Sample[]>>();
    for (const share of bench.settings.full ? curve : [half]) {
      const rates = new Map(contestants.map((one) => [one.name, share * (saturation.get(one.name) ?? 0)]));
      const turns = { scenario: name, pace: bench.settings.main, rates };
      curves.set(share, await inTurns(bench, contestants, turns));
    }
    const ledger = await ledgerOf(service, name, usualTraffic, tally);
    const measurements = contestants.map((contestant) =>
      measurementOf(contestant.name, curves.get(half)?.get(contestant.name) ?? [], {
        throughput: spreadOf([saturation.get(contestant.name) as number]),
        latencies: latenciesOf(curves, contestant.name),
        ledger: contestant.drains === null ? null : ledger,
      }),
    );
    const results = [{ name, about, axis: null, unit: 'answer' as const, measurements }];
    return { results, figures: figuresOf(curves.get(half) ?? new Map()) };
  },
};

/** By the generator of the open loop, since a cheaper one leaves the servers more of the machine. */
async function saturations(bench: Bench, contestants: readonly Contestant[]): Promise<Map<string, number>> {
  const { connections, side } = bench.settings;
  const found = new Map<string, number>();
  for (const contestant of contestants) {
    await bench.warm(name, contestant);
    bench.progress(`${name}: ${contestant.name}, saturation`);
    const settings = { connections, seconds: side.seconds, rate: null, ownGenerator: true };
    found.set(contestant.name, (await measure(bench.runner, contestant, settings)).perSecond);
  }
  return found;
}

const percentilesOf = (samples: readonly Sample[]): Percentiles[] =>
  samples.flatMap(({ load }) => (load.latency === null ? [] : [load.latency]));

const latenciesOf = (curves: Curves, target: string): Latency[] =>
  [...curves.values()].map((targets) => latencyOf(targets.get(target) ?? []));

/** Medians over the rounds, each percentile by itself. */
export function latencyOf(samples: readonly Sample[]): Latency {
  const median = (values: readonly number[]): number => spreadOf(values).median;
  const at = (pick: (percentiles: Percentiles) => number): number => median(percentilesOf(samples).map(pick));
  return {
    offered: median(samples.map(({ load }) => load.offered ?? 0)),
    achieved: median(samples.map(({ perSecond }) => perSecond)),
    p50: at(({ p50 }) => p50),
    p90: at(({ p90 }) => p90),
    p99: at(({ p99 }) => p99),
    p999: at(({ p999 }) => p999),
    max: at(({ max }) => max),
  };
}

function figuresOf(atHalf: ReadonlyMap<string, readonly Sample[]>): Figure[] {
  const p99 = (target: string): number[] => percentilesOf(atHalf.get(target) ?? []).map((one) => one.p99);
  const lags = (atHalf.get('skilltrace') ?? []).map(({ pipeline }) => pipeline?.lag ?? 0);
  return [
    figureOf('p99', spreadOf(p99('skilltrace'))),
    figureOf('p99Fastify', ratioSpread(p99('skilltrace'), p99('fastify'))),
    figureOf('lag', spreadOf(lags)),
  ];
}
