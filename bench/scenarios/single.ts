/** Single answers in a closed loop beside the ceiling and what a user would write instead. */
import type { Sample } from '../measure.js';
import { acceptingParts } from '../parts.js';
import type { Figure } from '../results.js';
import { cpuSums, type Scenario } from '../scenario.js';
import { ratioSpread } from '../spread.js';
import { besidePeers } from './beside-peers.js';

const name = 'single';
const about = 'single answers of 10,000 learners on 50 skills, closed loop';

export const single: Scenario = {
  name,
  about,
  long: false,
  run: async (bench) => {
    const peers = ['echo', 'fastify'] as const;
    const { samples, measurements } = await besidePeers(bench, name, bench.settings.main, peers);
    const results = [{ name, about, axis: null, unit: 'answer' as const, measurements }];
    return { results, figures: figuresOf((target) => samples.get(target) ?? []) };
  },
};

function figuresOf(of: (target: string) => readonly Sample[]): Figure[] {
  const accepting = (target: string): number[] => cpuSums(of(target), acceptingParts);
  const perSecond = (target: string): number[] => of(target).map((sample) => sample.perSecond);
  return [
    {
      name: 'CPU per single answer, to the echo',
      about: 'server, workers and all of Redis, with everything on',
      unit: 'times',
      value: ratioSpread(accepting('skilltrace'), accepting('echo')),
      goal: { atMost: 3.5 },
    },
    {
      name: 'throughput of single answers, to Fastify',
      about: 'closed loop, all connections busy',
      unit: 'times',
      value: ratioSpread(perSecond('skilltrace'), perSecond('fastify')),
      goal: { atLeast: 1.8 },
    },
    {
      name: 'CPU per single answer, to Fastify',
      about: 'server, workers and Redis of both',
      unit: 'times',
      value: ratioSpread(accepting('skilltrace'), accepting('fastify')),
      goal: { atMost: 0.55 },
    },
  ];
}
