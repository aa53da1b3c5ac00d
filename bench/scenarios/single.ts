/** Single answers in a closed loop beside the ceiling and what a user would write instead. */
import { figureOf } from '../goals.js';
import type { Sample } from '../measure.js';
import { acceptingParts } from '../parts.js';
import type { Figure, Spread } from '../results.js';
import { cpuSums, perSeconds, type Scenario } from '../scenario.js';
import { ratioSpread } from '../spread.js';
import { besidePeers } from './beside-peers.js';

const name = 'single';
const about = 'single answers of 10,000 learners on 50 skills, closed loop';

export const single: Scenario = {
  name,
  about,
  long: false,
  run: async (bench) => {
    const peers = ['echo', 'fastify', 'fastify-outbox'] as const;
    const { samples, measurements } = await besidePeers(bench, name, bench.settings.main, peers);
    const results = [{ name, about, axis: null, unit: 'answer' as const, measurements }];
    return { results, figures: figuresOf((target) => samples.get(target) ?? []) };
  },
};

function figuresOf(of: (target: string) => readonly Sample[]): Figure[] {
  const cpu = (target: string): Spread =>
    ratioSpread(cpuSums(of('skilltrace'), acceptingParts), cpuSums(of(target), acceptingParts));
  const perSecond = (target: string): Spread =>
    ratioSpread(perSeconds(of('skilltrace')), perSeconds(of(target)));
  return [
    figureOf('echo', cpu('echo')),
    figureOf('fastify', cpu('fastify')),
    figureOf('throughput', perSecond('fastify')),
    figureOf('promises', perSecond('fastify-outbox')),
    {
      name: 'CPU of a single answer, to Fastify with the same promises',
      about: 'server, workers and Redis of both',
      unit: 'times',
      value: cpu('fastify-outbox'),
      goal: null,
    },
  ];
}
