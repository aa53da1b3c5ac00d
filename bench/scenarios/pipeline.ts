/** The same answers with the pipeline running and standing still, beside the echo: what draining and the whole service cost. */
import { inTurns } from '../bench.js';
import { figureOf, scaledSpread } from '../goals.js';
import { newTally } from '../ledger.js';
import { usualTraffic } from '../load/traffic.js';
import type { Contestant, Sample } from '../measure.js';
import { drainingParts } from '../parts.js';
import type { Figure } from '../results.js';
import { atItsPace, cpuSums, ledgerOf, measurementOf, peerContestant, type Scenario } from '../scenario.js';
import { ratioSpread, spreadOf } from '../spread.js';

const name = 'pipeline';
const about = 'single answers with the pipeline on, and paused (its backlog is drained between the rounds)';

export const pipeline: Scenario = {
  name,
  about,
  long: false,
  run: async (bench) => {
    const [service, echo] = await Promise.all([bench.service(), bench.peer('echo')]);
    const tally = newTally();
    const on = atItsPace(service, name, usualTraffic, tally);
    const paused: Contestant = {
      ...on,
      name: `${service.name}, pipeline paused`,
      drains: null,
      settled: null,
      paused: service,
    };
    const turns = { scenario: name, pace: bench.settings.main };
    const samples = await inTurns(bench, [peerContestant(echo, name, usualTraffic), on, paused], turns);
    const ledger = await ledgerOf(service, name, usualTraffic, tally);
    const measurements = [...samples].map(([target, list]) =>
      measurementOf(target, list, target === echo.name ? {} : { ledger }),
    );
    const of = (target: string): readonly Sample[] => samples.get(target) ?? [];
    const figures = figuresOf(of(on.name), of(paused.name), of(echo.name));
    return { results: [{ name, about, axis: null, unit: 'answer', measurements }], figures };
  },
};

/** Redis accepts and drains; what it takes while the pipeline stands still is its share of accepting. */
function figuresOf(on: readonly Sample[], paused: readonly Sample[], echo: readonly Sample[]): Figure[] {
  const redisPaused = cpuSums(paused, ['redis']);
  const redisDraining = cpuSums(on, ['redis']).map((all, round) =>
    Math.max(0, all - (redisPaused[round] as number)),
  );
  return [
    figureOf('whole', ratioSpread(cpuSums(on), cpuSums(echo))),
    figureOf('draining', scaledSpread(cpuSums(on, drainingParts), cpuSums(echo))),
    {
      name: 'CPU of Redis for draining, per answer',
      about: 'the difference with the pipeline on and paused',
      unit: 'µs',
      value: spreadOf(redisDraining),
      goal: null,
    },
  ];
}
