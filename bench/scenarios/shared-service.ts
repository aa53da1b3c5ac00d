import { usualTraffic } from '../load/traffic.js';
import { allParts, drainingParts } from '../measurement/rounds.js';
import { createSharedScenario, withScheduledDrain } from '../measurement/scenario.js';
import { createAnswerGenerator } from '../measurement/seed.js';
import { computeScaledSpread, createGoalFigure, createPlainFigure } from '../results/goals.js';
import { computeRatioSpread } from '../results/spread.js';

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

/** More connections could overfill a lane: the service would reject answers. */
const batchConnections = 4;

const nameBatch = (answers: number): string => `${serviceName}, ${answers} per request`;

export const batches = createSharedScenario({
  name: 'batches',
  about: 'single answers, and batches of 100 and 1000',
  isLong: false,
  pace: 'side',
  peers: ['echo'],
  contestants: (usual) =>
    [1, 100, 1000].map((batch) => ({
      ...usual,
      name: nameBatch(batch),
      traffic: { ...usual.traffic, batch },
      ...(batch > 1 && { connections: batchConnections }),
    })),
  figures: (rounds) => [
    createGoalFigure(
      'batches',
      computeScaledSpread(rounds.cpu(nameBatch(1000), ['front end', 'workers', 'redis']), rounds.cpu('echo')),
    ),
    createPlainFigure(
      'CPU per answer in batches of 1000, relative to single answers',
      'server, workers, runtime and Redis',
      'times',
      computeRatioSpread(rounds.cpu(nameBatch(1000)), rounds.cpu(nameBatch(1))),
    ),
  ],
});

const nameSkills = (skills: number): string => `${serviceName}, skills per answer: ${skills}`;

export const severalSkills = createSharedScenario({
  name: 'several-skills',
  about: 'single answers with one skill and with three, closed loop',
  isLong: true,
  pace: 'side',
  traffic: { ...usualTraffic, skillsPerAnswer: 3 },
  contestants: (usual) =>
    [1, 3].map((skillsPerAnswer) => ({
      ...usual,
      name: nameSkills(skillsPerAnswer),
      traffic: { ...usual.traffic, skillsPerAnswer },
    })),
  figures: (rounds) => [
    createPlainFigure(
      'CPU per answer with three skills, relative to one skill',
      'server, workers, runtime and Redis',
      'times',
      computeRatioSpread(rounds.cpu(nameSkills(3)), rounds.cpu(nameSkills(1))),
    ),
  ],
});

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
