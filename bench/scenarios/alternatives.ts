/** Other ways to build the same: a job for each answer, a task for each request. */
import type { Scenario } from '../scenario.js';
import { besidePeers } from './beside-peers.js';

const name = 'alternatives';
const about = 'single answers: Fastify with a BullMQ job per answer, and one Piscina task per request';

export const alternatives: Scenario = {
  name,
  about,
  long: false,
  run: async (bench) => {
    const peers = ['echo', 'fastify-bullmq', 'task-per-request'] as const;
    const { measurements } = await besidePeers(bench, name, bench.settings.glance, peers);
    return { results: [{ name, about, axis: null, unit: 'answer', measurements }], figures: [] };
  },
};
