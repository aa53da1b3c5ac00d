import { computeConnectionLimit } from '../../src/app/open-files.js';
import { type Bench, inTurns, ownService, saturationOf } from '../bench.js';
import { onCores, splitCores } from '../cores.js';
import { figureOf } from '../goals.js';
import { usualTraffic } from '../load/traffic.js';
import type { Sample } from '../measure.js';
import type { Latency } from '../results.js';
import { latencyOf, p99Of } from '../rounds.js';
import {
  atItsPace,
  type Findings,
  ledgerOf,
  measurementOf,
  type Scenario,
  serviceContestant,
} from '../scenario.js';
import type { Service } from '../service.js';
import { spreadOf } from '../spread.js';

const name = 'overload';
const openLoop = 'open loop over thousands of connections, at multiples of what a closed loop of 512 gets';
const cores = splitCores();
const sharing =
  cores === null
    ? 'the generator shares the cores of the service'
    : `service on cores ${cores.service}, generator on cores ${cores.generator}`;
const shares = [0.5, 1, 1.5, 2, 3];
/** Connections that keep the service busy without rejections. */
const saturating = 512;
/**
 * More than the service queues, within its limit of open files, and few enough that none is closed as idle.
 */
const connectionsFor = (capacity: number): number =>
  Math.floor(Math.min(0.9 * computeConnectionLimit(), 1000 + 2 * capacity));

export const overload: Scenario = {
  name,
  about: `${openLoop}; ${sharing}`,
  long: true,
  run: async (bench) => {
    const service = await onCores(cores?.service ?? null, () => ownService(bench, name));
    return onCores(cores?.generator ?? null, () => overloaded(bench, service));
  },
};

async function overloaded(bench: Bench, service: Service): Promise<Findings> {
  const contestant = atItsPace(serviceContestant(service, name, usualTraffic));
  const { main } = bench.settings;
  const capacity = await saturationOf(bench, { ...contestant, connections: saturating }, main);
  const crowded = { ...contestant, connections: connectionsFor(capacity), mayRefuse: true };
  const curve = new Map<number, readonly Sample[]>();
  for (const share of shares) {
    const rounds = await inTurns(bench, [{ ...crowded, rate: share * capacity }], main);
    await service.hurried();
    curve.set(share, rounds.of(service.name));
  }
  const more = {
    throughput: spreadOf([capacity]),
    latencies: [...curve.values()].map(refusingLatencyOf),
    ledger: await ledgerOf(contestant),
  };
  const twice = curve.get(2) ?? [];
  return {
    results: [{ measurements: [measurementOf(service.name, curve.get(1) ?? [], more)] }],
    figures: [
      figureOf('overload', spreadOf(twice.map(({ perSecond }) => perSecond / capacity))),
      figureOf('overloadP99', spreadOf(p99Of(twice))),
    ],
  };
}

const refusingLatencyOf = (samples: readonly Sample[]): Latency => ({
  ...latencyOf(samples),
  refused: spreadOf(samples.map(({ load }) => load.refused / load.seconds)).median,
});
