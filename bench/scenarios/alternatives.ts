/** Other ways to build the same: a job for each answer, a task for each request. */
import { inTurns } from '../bench.js';
import { newTally } from '../ledger.js';
import { usualTraffic } from '../load/traffic.js';
import { ledgerOf, measurementOf, peerContestant, type Scenario, serviceContestant } from '../scenario.js';

const name = 'alternatives';
const about = 'single answers: Fastify with a BullMQ job per answer, and one Piscina task per request';

export const alternatives: Scenario = {
  name,
  about,
  long: false,
  run: async (bench) => {
    const [service, ...peers] = await Promise.all([
      bench.service(),
      bench.peer('echo'),
      bench.peer('fastify-bullmq'),
      bench.peer('task-per-request'),
    ]);
    const tally = newTally();
    const contestants = [
      ...peers.map((peer) => peerContestant(peer, name, usualTraffic)),
      serviceContestant(service, name, usualTraffic, tally),
    ];
    const samples = await inTurns(bench, contestants, { scenario: name, pace: bench.settings.glance });
    const ledger = await ledgerOf(service, name, usualTraffic, tally);
    const measurements = [...samples].map(([target, list]) =>
      measurementOf(target, list, target === service.name ? { ledger } : {}),
    );
    return { results: [{ name, about, axis: null, unit: 'answer', measurements }], figures: [] };
  },
};
