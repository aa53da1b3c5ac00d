/** A learner's states as one text, for ClickHouse to keep when the rows that led to them are dropped. */
import type { ReplayedStates } from '../../domain/history/replay.js';
import {
  decodeItem,
  decodeLearner,
  decodeSkill,
  encodeItem,
  encodeLearner,
  encodeSkill,
} from './learner-codec.js';

/** Of the text around the records, which carry a format of their own. */
const version = 1;

/** Ids with records in base64. */
type Records = readonly (readonly [id: string, record: string])[];

interface Snapshot {
  readonly v: number;
  readonly learner: string;
  readonly skills: Records;
  /** Of generations of even and of odd number. */
  readonly items: readonly [even: Records, odd: Records];
}

export const encodeSnapshot = ({ learner, skills, items: [even, odd] }: ReplayedStates): string =>
  JSON.stringify({
    v: version,
    learner: encodeLearner(learner).toString('base64'),
    skills: encoded(skills, encodeSkill),
    items: [encoded(even, encodeItem), encoded(odd, encodeItem)],
  } satisfies Snapshot);

/** @throws Error for a snapshot of a newer version of the service */
export function decodeSnapshot(text: string): ReplayedStates {
  const { v, learner, skills, items } = JSON.parse(text) as Snapshot;
  if (v !== version)
    throw new Error(`a snapshot of version ${v} is not known to this version of the service`);
  return {
    learner: decodeLearner(Buffer.from(learner, 'base64')),
    skills: decoded(skills, decodeSkill),
    items: [decoded(items[0], decodeItem), decoded(items[1], decodeItem)],
  };
}

const encoded = <State>(states: ReadonlyMap<string, State>, encode: (state: State) => Buffer): Records =>
  [...states].map(([id, state]) => [id, encode(state).toString('base64')]);

const decoded = <State>(records: Records, decode: (record: Buffer) => State): Map<string, State> =>
  new Map(records.map(([id, record]) => [id, decode(Buffer.from(record, 'base64'))]));
