/** The same answers with the pipeline running and standing still: what draining costs. */
import { inTurns } from '../bench.js';
import { newTally } from '../ledger.js';
import { usualTraffic } from '../load/traffic.js';
import type { Contestant, Sample } from '../measure.js';
import { acceptingParts, drainingParts } from '../parts.js';
import type { Figure } from '../results.js';
import { atItsPace, cpuSums, ledgerOf, measurementOf, type Scenario } from '../scenario.js';
import { ratioSpread, spreadOf } from '../spread.js';

const name = 'pipeline';
const about = 'single answers with the pipeline on, and paused (its backlog is drained between the rounds)';

export const pipeline: Scenario = {
  name,
  about,
  long: false,
  run: async (bench) => {
    const service = await bench.service();
    const tally = newTally();
    const on = atItsPace(service, name, usualTraffic, tally);
    const paused: Contestant = {
      ...on,
      name: `${service.name}, pipeline paused`,
      drains: null,
      settled: null,
      paused: service,
    };
    const turns = { scenario: name, pace: bench.settings.side };
    const samples = await inTurns(bench, [on, paused], turns);
    const ledger = await ledgerOf(service, name, usualTraffic, tally);
    const measurements = [...samples].map(([target, list]) => measurementOf(target, list, { ledger }));
    const figures = figuresOf(samples.get(on.name) ?? [], samples.get(paused.name) ?? []);
    return { results: [{ name, about, axis: null, unit: 'answer', measurements }], figures };
  },
};

/** Redis accepts and drains; what it takes while the pipeline stands still is its share of accepting. */
function figuresOf(on: readonly Sample[], paused: readonly Sample[]): Figure[] {
  const accepting = cpuSums(paused, acceptingParts);
  const redisPaused = cpuSums(paused, ['redis']);
  const redisDraining = cpuSums(on, ['redis']).map((all, round) =>
    Math.max(0, all - (redisPaused[round] as number)),
  );
  const draining = cpuSums(on, drainingParts).map((cpu, round) => cpu + (redisDraining[round] as number));
  return [
    {
      name: 'CPU of the pipeline per answer, to accepting it',
      about: 'its process, ClickHouse, and what Redis takes more than with the pipeline paused',
      unit: 'times',
      value: ratioSpread(draining, accepting),
      goal: { atMost: 1 },
    },
    {
      name: 'CPU of Redis for draining, per answer',
      about: 'the difference with the pipeline on and paused',
      unit: 'µs',
      value: spreadOf(redisDraining),
      goal: null,
    },
  ];
}
