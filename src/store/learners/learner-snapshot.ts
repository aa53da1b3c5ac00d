import type { ReplayedStates } from '../../domain/history/replay.js';
import { decodeItem, encodeItem } from './item-codec.js';
import { decodeLearner, encodeLearner } from './learner-codec.js';
import { decodeSkill, encodeSkill } from './skill-codec.js';

const snapshotVersion = 1;

/** JSON with base64 records. In ClickHouse it replaces dropped rows. */
export const encodeSnapshot = ({ learner, skills, items: [even, odd] }: ReplayedStates): string =>
  JSON.stringify({
    v: snapshotVersion,
    learner: encodeLearner(learner).toString('base64'),
    skills: encodeStates(skills, encodeSkill),
    items: [encodeStates(even, encodeItem), encodeStates(odd, encodeItem)],
  });

/** @throws Error for another version */
export function decodeSnapshot(text: string): ReplayedStates {
  const { v, learner, skills, items } = JSON.parse(text);
  if (v !== snapshotVersion) throw new Error(`unsupported snapshot version ${v}`);
  return {
    learner: decodeLearner(Buffer.from(learner, 'base64')),
    skills: decodeStates(skills, decodeSkill),
    items: [decodeStates(items[0], decodeItem), decodeStates(items[1], decodeItem)],
  };
}

const encodeStates = <State>(states: ReadonlyMap<string, State>, encode: (state: State) => Buffer) =>
  [...states].map(([id, state]) => [id, encode(state).toString('base64')] as const);

const decodeStates = <State>(records: [id: string, record: string][], decode: (record: Buffer) => State) =>
  new Map(records.map(([id, record]) => [id, decode(Buffer.from(record, 'base64'))]));
