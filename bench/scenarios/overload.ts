import { computeConnectionLimit } from '../../src/app/startup/open-files.js';
import { usualTraffic } from '../load/traffic.js';
import {
  type Bench,
  measureInTurns,
  measureSaturation,
  startDedicatedService,
} from '../measurement/bench.js';
import type { Sample } from '../measurement/measure.js';
import { computeLatency, listP99 } from '../measurement/rounds.js';
import {
  buildMeasurement,
  checkTenantLedger,
  createServiceContestant,
  type Findings,
  type Scenario,
  withScheduledDrain,
} from '../measurement/scenario.js';
import { createGoalFigure } from '../results/goals.js';
import type { Latency } from '../results/results.js';
import { computeSpread } from '../results/spread.js';
import { splitCores, withCores } from '../targets/cores.js';
import type { Service } from '../targets/service.js';

const name = 'overload';
const openLoop =
  'open loop with thousands of connections, at multiples of the saturation with 512 connections';
const cores = splitCores();
const coresText =
  cores === null
    ? 'load generator and service share the cores'
    : `service on cores ${cores.service}, load generator on cores ${cores.generator}`;
const shares = [0.5, 1, 1.5, 2, 3];
/** Connections that keep the service busy without rejections. */
const saturatingConnections = 512;
/**
 * More than the service queues, within its limit of open files, and few enough that none is closed as idle.
 */
const computeConnections = (capacity: number): number =>
  Math.floor(Math.min(0.9 * computeConnectionLimit(), 1000 + 2 * capacity));

export const overload: Scenario = {
  name,
  about: `${openLoop}; ${coresText}`,
  isLong: true,
  run: async (bench) => {
    const service = await withCores(cores?.service ?? null, () => startDedicatedService(bench, name));
    return withCores(cores?.generator ?? null, () => measureOverload(bench, service));
  },
};

async function measureOverload(bench: Bench, service: Service): Promise<Findings> {
  const contestant = withScheduledDrain(createServiceContestant(service, name, usualTraffic));
  const { main } = bench.settings;
  const capacity = await measureSaturation(
    bench,
    { ...contestant, connections: saturatingConnections },
    main,
  );
  const crowded = { ...contestant, connections: computeConnections(capacity), mayRefuse: true };
  const curve = new Map<number, readonly Sample[]>();
  for (const share of shares) {
    const rounds = await measureInTurns(bench, [{ ...crowded, rate: share * capacity }], main);
    await service.drainImmediately();
    curve.set(share, rounds.getSamples(service.name));
  }
  const more = {
    throughput: computeSpread([capacity]),
    latencies: [...curve.values()].map(computeOverloadLatency),
    ledger: await checkTenantLedger(contestant),
  };
  const twice = curve.get(2) ?? [];
  return {
    results: [{ measurements: [buildMeasurement(service.name, curve.get(1) ?? [], more)] }],
    figures: [
      createGoalFigure('overload', computeSpread(twice.map(({ perSecond }) => perSecond / capacity))),
      createGoalFigure('overloadP99', computeSpread(listP99(twice))),
    ],
  };
}

const computeOverloadLatency = (samples: readonly Sample[]): Latency => ({
  ...computeLatency(samples),
  refused: computeSpread(samples.map(({ load }) => load.rejected / load.seconds)).median,
});
