import { type Traffic, usualTraffic } from '../load/traffic.js';
import { allParts, drainingParts } from '../measurement/rounds.js';
import { createSharedScenario, type Scenario, withScheduledDrain } from '../measurement/scenario.js';
import { createAnswerGenerator } from '../measurement/seed.js';
import { computeScaledSpread, createGoalFigure, createPlainFigure } from '../results/goals.js';
import { computeRatioSpread, computeSpread } from '../results/spread.js';

const serviceName = 'skilltrace';

export const single = createSharedScenario({
  name: 'single',
  about: 'single answers of 10,000 learners on 50 skills, closed loop',
  isLong: false,
  pace: 'main',
  peers: ['echo', 'fastify', 'fastify-outbox'],
  contestants: (usual) => [withScheduledDrain(usual)],
  figures: (rounds) => {
    const echo = rounds.cpu('echo');
    const later = rounds.cpu(serviceName, drainingParts);
    const outbox = computeRatioSpread(rounds.cpu(serviceName), rounds.cpu('fastify-outbox'));
    return [
      createGoalFigure('whole', computeRatioSpread(rounds.cpu(serviceName, allParts), echo)),
      createGoalFigure('outbox', outbox),
      createGoalFigure('draining', computeScaledSpread(later, echo)),
    ];
  },
});

const pausedName = `${serviceName}, pipeline paused`;

export const pipeline = createSharedScenario({
  name: 'pipeline',
  about:
    'single answers, closed loop, with the pipeline running and paused (the backlog is drained between rounds)',
  isLong: true,
  pace: 'main',
  contestants: (usual) => [
    withScheduledDrain(usual),
    { ...usual, name: pausedName, drains: null, waitUntilSettled: null, paused: usual.drains },
  ],
  figures: (rounds) => {
    // While the pipeline is paused, Redis only accepts answers.
    const redisPaused = rounds.cpu(pausedName, ['redis']);
    const redisDraining = rounds
      .cpu(serviceName, ['redis'])
      .map((all, round) => Math.max(0, all - (redisPaused[round] as number)));
    return [
      createPlainFigure(
        'CPU of Redis for the drain, per answer',
        'difference between a running and a paused pipeline',
        'µs',
        computeSpread(redisDraining),
      ),
    ];
  },
});

/** More connections could overfill a lane: the service would reject answers. */
const batchConnections = 4;

export const batches = createSharedScenario({
  name: 'batches',
  about: 'single answers, and batches of 100 and 1000',
  isLong: false,
  pace: 'side',
  peers: ['echo'],
  contestants: (usual) =>
    [1, 100, 1000].map((batch) => ({
      ...usual,
      name: `${batch}`,
      axis: { label: 'answers per request', value: batch },
      traffic: { ...usual.traffic, batch },
      ...(batch > 1 && { connections: batchConnections }),
    })),
  figures: (rounds) => [
    createGoalFigure(
      'batches',
      computeScaledSpread(rounds.cpu('1000', ['front end', 'workers', 'redis']), rounds.cpu('echo')),
    ),
    createPlainFigure(
      'CPU per answer in batches of 1000, relative to single answers',
      'server, workers, runtime and Redis',
      'times',
      computeRatioSpread(rounds.cpu('1000'), rounds.cpu('1')),
    ),
  ],
});

export const severalSkills = createSharedScenario({
  name: 'several-skills',
  about: 'single answers with one skill and with three, closed loop',
  isLong: true,
  pace: 'side',
  traffic: { ...usualTraffic, skillsPerAnswer: 3 },
  contestants: (usual) =>
    [1, 3].map((skillsPerAnswer) => ({
      ...usual,
      name: `${skillsPerAnswer}`,
      axis: { label: 'skills per answer', value: skillsPerAnswer },
      traffic: { ...usual.traffic, skillsPerAnswer },
    })),
  figures: (rounds) => [
    createPlainFigure(
      'CPU per answer with three skills, relative to one skill',
      'server, workers, runtime and Redis',
      'times',
      computeRatioSpread(rounds.cpu('3'), rounds.cpu('1')),
    ),
  ],
});

const createTrafficScenario = (
  name: string,
  about: string,
  special: Partial<Traffic>,
  isLong = false,
): Scenario => {
  const traffic = { ...usualTraffic, ...special };
  const isMixed = traffic.kind === 'mixed';
  return createSharedScenario({
    ...{ name, about, isLong, pace: 'glance', traffic },
    unit: isMixed ? 'request' : 'answer',
    // Reads need learners with answers.
    ...(isMixed && {
      seed: { answers: traffic.learners, seed: createAnswerGenerator(traffic.learners, traffic.skills) },
    }),
  });
};

export const trafficScenarios: readonly Scenario[] = [
  createTrafficScenario(
    'mixed',
    '90 % answers, 8 % mastery and predictions, 2 % velocity; learners drawn by Zipf’s law, no event ids',
    { kind: 'mixed', order: 'zipf', eventIds: false },
  ),
  createTrafficScenario('hot', 'all answers from one learner, no event ids', {
    order: 'hot',
    eventIds: false,
  }),
  createTrafficScenario('cold', 'every answer from a new learner', { newLearners: true }),
  createTrafficScenario('full-events', 'single answers with item and confidence', { items: 20 }, true),
];

export const predictions = createSharedScenario({
  name: 'predictions',
  about: 'GET predictions for 300 learners with 40 skills each, closed loop',
  isLong: false,
  unit: 'request',
  pace: 'side',
  peers: ['echo'],
  traffic: { ...usualTraffic, kind: 'predictions', learners: 300, skills: 40 },
  seed: { answers: 2 * 300 * 40, seed: createAnswerGenerator(300, 40) },
  contestants: (usual) => [{ ...usual, drains: null, waitUntilSettled: null }],
  figures: (rounds) => [
    createGoalFigure(
      'predictions',
      computeRatioSpread(rounds.perSecond(serviceName), rounds.perSecond('echo')),
    ),
  ],
});
