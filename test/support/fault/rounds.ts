/** Which rounds a run has: every fault of every deployment once, then mixtures; or a random choice of those. */

import type { Scoped } from '../servers/service.js';
import { commonFaults, type Fault, mixed, splitFaults } from './faults.js';
import { type Stand, startSplit, startWhole } from './stand.js';

export interface Series {
  readonly name: string;
  start(t: Scoped): Promise<Stand>;
  readonly faults: readonly Fault[];
}

/** Small enough to be filled in a few seconds. */
const outboxMaxRows = 32_000;

const series: readonly Series[] = [
  {
    name: 'api + pipeline',
    start: (t) => startSplit(t, { fsync: 'everysec', outboxMaxRows }),
    faults: splitFaults,
  },
  { name: 'one process', start: (t) => startWhole(t, 1), faults: commonFaults },
  {
    name: 'fsync always',
    start: (t) => startSplit(t, { fsync: 'always', outboxMaxRows }),
    faults: splitFaults.filter(({ name }) => name.includes('redis')),
  },
  { name: '2 API processes', start: (t) => startWhole(t, 2), faults: commonFaults },
];

/** What `npm test` has time for. */
const shortSeries = 2;

export interface PlannedSeries extends Pick<Series, 'name' | 'start'> {
  readonly rounds: readonly Fault[];
}

/** @param count rounds of all series together */
export function planRounds(count: number, long: boolean, random: () => number): PlannedSeries[] {
  const chosen = series.slice(0, long ? series.length : shortSeries).map((one) => ({
    ...one,
    faults: one.faults.filter((fault) => long || !fault.long),
  }));
  const once = chosen.flatMap(({ name, faults }) => faults.map((fault) => ({ name, fault })));
  const all = shuffled(once, random).slice(0, count);
  for (let i = all.length; i < count; i++) {
    const { name, faults } = chosen[i % chosen.length] as Series;
    all.push({ name, fault: mixed(faults, random) });
  }
  return chosen
    .map(({ name, start }) => ({
      name,
      start,
      rounds: all.flatMap((planned) => (planned.name === name ? [planned.fault] : [])),
    }))
    .filter(({ rounds }) => rounds.length > 0);
}

function shuffled<Value>(values: readonly Value[], random: () => number): Value[] {
  return values
    .map((value) => ({ value, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ value }) => value);
}
