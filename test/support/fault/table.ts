/** The rounds of a fault test as a table. */
import { formatTable } from '../../../src/lab/report/format.js';
import type { Round } from './round.js';

const head = [
  'fault',
  'rounds',
  'accepted',
  'taken back',
  'lost',
  'doubled',
  'differences',
  'refused',
  'accepting after',
  'drained after',
];

/** A line for each deployment and fault, those of mixed ones together; times are the worst. */
export function tableOf(rounds: readonly Round[]): string {
  const groups = new Map<string, Round[]>();
  for (const round of rounds) {
    const name = `${round.stand}: ${round.fault.startsWith('mixed') ? 'mixed' : round.fault}`;
    groups.set(name, [...(groups.get(name) ?? []), round]);
  }
  return formatTable([head, ...[...groups].map(([name, own]) => lineOf(name, own)), lineOf('all', rounds)]);
}

function lineOf(name: string, rounds: readonly Round[]): string[] {
  const sum = (pick: (round: Round) => number): string =>
    `${rounds.reduce((total, one) => total + pick(one), 0)}`;
  const worst = (pick: (round: Round) => number): string =>
    `${(Math.max(...rounds.map(pick)) / 1000).toFixed(1)} s`;
  return [
    name,
    `${rounds.length}`,
    sum(({ accepted }) => accepted),
    sum(({ takenBack }) => takenBack),
    sum(({ lost }) => lost),
    sum(({ doubled }) => doubled),
    sum(({ differences }) => differences.length),
    sum(({ refused }) => refused),
    worst(({ acceptedAfterMs }) => acceptedAfterMs),
    worst(({ drainedAfterMs }) => drainedAfterMs),
  ];
}
