/** Half of what the service can do, for a minute: does ClickHouse keep up? */
import { inTurns } from '../bench.js';
import { figureOf } from '../goals.js';
import { newTally } from '../ledger.js';
import { usualTraffic } from '../load/traffic.js';
import { measure } from '../measure.js';
import { atItsPace, ledgerOf, measurementOf, type Scenario } from '../scenario.js';
import { spreadOf } from '../spread.js';
import { latencyOf } from './latency.js';

const name = 'sustained';
const about = 'open loop at half of saturation for a minute';
const pace = { rounds: 1, seconds: 60 };

export const sustained: Scenario = {
  name,
  about,
  long: true,
  run: async (bench) => {
    const service = await bench.service();
    const tally = newTally();
    const contestant = atItsPace(service, name, usualTraffic, tally);
    const { connections, main } = bench.settings;
    const settings = { connections, seconds: main.seconds, rate: null, ownGenerator: true };
    const { perSecond } = await measure(bench.runner, contestant, settings);
    const rates = new Map([[contestant.name, perSecond / 2]]);
    const turns = { scenario: name, pace, rates };
    const samples = (await inTurns(bench, [contestant], turns)).get(contestant.name) ?? [];
    const ledger = await ledgerOf(service, name, usualTraffic, tally);
    const more = { throughput: null, latencies: [latencyOf(samples)], ledger };
    const measurements = [measurementOf(service.name, samples, more)];
    const figure = figureOf('minute', spreadOf(samples.map(({ pipeline }) => pipeline?.lag ?? 0)));
    return { results: [{ name, about, axis: null, unit: 'answer', measurements }], figures: [figure] };
  },
};
