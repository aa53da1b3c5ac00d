import { saturationOf } from '../bench.js';
import { figureOf, scaledSpread, shownFigure } from '../goals.js';
import { type Traffic, usualTraffic } from '../load/traffic.js';
import type { Spread } from '../results.js';
import { allParts, drainingParts } from '../rounds.js';
import { atItsPace, onSharedService, type Scenario } from '../scenario.js';
import { seedOf } from '../seed.js';
import { ratioSpread, spreadOf } from '../spread.js';

const ours = 'skilltrace';

export const single = onSharedService({
  name: 'single',
  about: 'single answers of 10,000 learners on 50 skills, closed loop',
  long: false,
  pace: 'main',
  peers: ['echo', 'fastify', 'fastify-outbox'],
  figures: (rounds) => {
    const cpu = (peer: string): Spread => ratioSpread(rounds.cpu(ours), rounds.cpu(peer));
    const perSecond = (peer: string): Spread => ratioSpread(rounds.perSecond(ours), rounds.perSecond(peer));
    return [
      figureOf('echo', cpu('echo')),
      figureOf('fastify', cpu('fastify')),
      figureOf('throughput', perSecond('fastify')),
      figureOf('promises', perSecond('fastify-outbox')),
      shownFigure(
        'CPU of a single answer, to Fastify with the same promises',
        'server, workers and Redis of both',
        'times',
        cpu('fastify-outbox'),
      ),
    ];
  },
});

const paused = `${ours}, pipeline paused`;

export const pipeline = onSharedService({
  name: 'pipeline',
  about: 'single answers with the pipeline on, and paused (its backlog is drained between the rounds)',
  long: false,
  pace: 'main',
  peers: ['echo'],
  contestants: (usual) => [
    atItsPace(usual),
    { ...usual, name: paused, drains: null, settled: null, paused: usual.drains },
  ],
  figures: (rounds) => {
    // While the pipeline is paused, Redis only accepts answers.
    const redisPaused = rounds.cpu(paused, ['redis']);
    const redisDraining = rounds
      .cpu(ours, ['redis'])
      .map((all, round) => Math.max(0, all - (redisPaused[round] as number)));
    return [
      figureOf('whole', ratioSpread(rounds.cpu(ours, allParts), rounds.cpu('echo'))),
      figureOf('draining', scaledSpread(rounds.cpu(ours, drainingParts), rounds.cpu('echo'))),
      shownFigure(
        'CPU of Redis for draining, per answer',
        'the difference with the pipeline on and paused',
        'µs',
        spreadOf(redisDraining),
      ),
    ];
  },
});

/** More connections could overfill a lane: the service would reject answers. */
const batchConnections = 4;

export const batches = onSharedService({
  name: 'batches',
  about: 'answers one by one, and in requests of 100 and of 1000',
  long: false,
  pace: 'side',
  peers: ['echo'],
  contestants: (usual) =>
    [1, 100, 1000].map((batch) => ({
      ...usual,
      name: `${batch}`,
      axis: { label: 'answers a request', value: batch },
      traffic: { ...usual.traffic, batch },
      ...(batch > 1 && { connections: batchConnections }),
    })),
  figures: (rounds) => [
    figureOf(
      'batches',
      scaledSpread(rounds.cpu('1000', ['front end', 'workers', 'redis']), rounds.cpu('echo')),
    ),
    shownFigure(
      'CPU of an answer in batches of 1000, to single ones',
      'server, workers, runtime and Redis',
      'times',
      ratioSpread(rounds.cpu('1000'), rounds.cpu('1')),
    ),
  ],
});

/** Batches are small here, so an answer costs most. */
export const steady = onSharedService({
  name: 'steady',
  about:
    'open loop with 1000 single answers a second; the echo in a closed loop beside it, for the pace of the machine',
  long: false,
  pace: 'main',
  peers: ['echo'],
  contestants: (usual) => [{ ...atItsPace(usual), rate: 1000 }],
  figures: (rounds) => [figureOf('steady', scaledSpread(rounds.cpu(ours), rounds.cpu('echo')))],
});

const kindOf = (name: string, about: string, special: Partial<Traffic>, long = false): Scenario => {
  const traffic = { ...usualTraffic, ...special };
  const isMixed = traffic.kind === 'mixed';
  return onSharedService({
    ...{ name, about, long, pace: 'glance', traffic },
    unit: isMixed ? 'request' : 'answer',
    // Reads need learners with answers.
    ...(isMixed && { seed: { answers: traffic.learners, seed: seedOf(traffic.learners, traffic.skills) } }),
  });
};

export const kinds: readonly Scenario[] = [
  kindOf(
    'mixed',
    '90 % answers, 8 % mastery and predictions, 2 % velocity, of learners by Zipf’s law, without event ids',
    { kind: 'mixed', order: 'zipf', fields: 'no ids' },
  ),
  kindOf('hot', 'one learner alone, without event ids', { order: 'hot', fields: 'no ids' }),
  kindOf('cold', 'every answer is that of a new learner', { newLearners: true }),
  kindOf('full-events', 'single answers with item, confidence and time as well', { fields: 'all' }, true),
];

export const predictions = onSharedService({
  name: 'predictions',
  about: 'GET predictions of 300 learners with 40 skills each, closed loop',
  long: false,
  unit: 'request',
  pace: 'side',
  peers: ['echo'],
  traffic: { ...usualTraffic, kind: 'predictions', learners: 300, skills: 40 },
  seed: { answers: 2 * 300 * 40, seed: seedOf(300, 40) },
  contestants: (usual) => [{ ...usual, drains: null, settled: null }],
  figures: (rounds) => [
    figureOf('predictions', ratioSpread(rounds.perSecond(ours), rounds.perSecond('echo'))),
  ],
});

export const alternatives = onSharedService({
  name: 'alternatives',
  about: 'single answers: Fastify with a BullMQ job per answer, and one Piscina task per request',
  long: false,
  pace: 'glance',
  peers: ['echo', 'fastify-bullmq', 'task-per-request'],
});

export const sittings = onSharedService({
  name: 'sittings',
  about: 'learners in sittings of about 20 answers, 200 at a time, and learners at random',
  long: true,
  pace: 'side',
  contestants: (usual) =>
    (['random', 'sittings'] as const).map((order) => ({
      ...usual,
      name: `${ours}, ${order}`,
      traffic: { ...usual.traffic, order },
    })),
  figures: (rounds) => [
    shownFigure(
      'CPU per answer in sittings, to random learners',
      'server, workers and Redis',
      'times',
      ratioSpread(rounds.cpu(`${ours}, sittings`), rounds.cpu(`${ours}, random`)),
    ),
  ],
});

export const sustained = onSharedService({
  name: 'sustained',
  about: 'open loop at half of saturation for a minute',
  long: true,
  pace: { rounds: 1, seconds: 60 },
  contestants: async (usual, bench) => {
    const once = { rounds: 1, seconds: bench.settings.main.seconds };
    const contestant = atItsPace(usual);
    return [{ ...contestant, rate: (await saturationOf(bench, contestant, once)) / 2 }];
  },
  figures: (rounds) => [figureOf('minute', spreadOf(rounds.lag(ours)))],
});
