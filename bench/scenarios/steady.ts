/** A load that is far from any limit: batches are small, so an answer costs most. */
import { inTurns } from '../bench.js';
import { figureOf, scaledSpread } from '../goals.js';
import { newTally } from '../ledger.js';
import { usualTraffic } from '../load/traffic.js';
import { acceptingParts } from '../parts.js';
import { atItsPace, cpuSums, ledgerOf, measurementOf, peerContestant, type Scenario } from '../scenario.js';
import { latencyOf } from './latency.js';

const name = 'steady';
const about =
  'open loop with 1000 single answers a second; the echo in a closed loop beside it, for the pace of the machine';
const rate = 1000;

export const steady: Scenario = {
  name,
  about,
  long: false,
  run: async (bench) => {
    const [service, echo] = await Promise.all([bench.service(), bench.peer('echo')]);
    const tally = newTally();
    const contestants = [
      peerContestant(echo, name, usualTraffic),
      atItsPace(service, name, usualTraffic, tally),
    ];
    const rates = new Map([[service.name, rate]]);
    const samples = await inTurns(bench, contestants, { scenario: name, pace: bench.settings.main, rates });
    const ledger = await ledgerOf(service, name, usualTraffic, tally);
    const [bare = [], ours = []] = [...samples.values()];
    const more = { throughput: null, latencies: [latencyOf(ours)], ledger };
    const measurements = [measurementOf(echo.name, bare), measurementOf(service.name, ours, more)];
    const value = scaledSpread(cpuSums(ours, acceptingParts), cpuSums(bare));
    const figures = [figureOf('steady', value)];
    return { results: [{ name, about, axis: null, unit: 'answer', measurements }], figures };
  },
};
