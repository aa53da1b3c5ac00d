/** All that is stored of one learner, as bytes. */

import type { ReplayedStates } from '../../domain/history/replay.js';
import type { ItemTrace } from '../../domain/tracing/traces.js';
import { hashItem } from '../models/item-store.js';
import { encodeItem, encodeLearner, encodeSkill } from './learner-codec.js';
import { learnerField, skillField } from './learner-records.js';

/** Fields of a hash with their values. */
export type Fields = readonly (readonly [field: Buffer, value: Buffer])[];

export interface LearnerDump {
  /** Of the learner hash; the goal's stands beside them. */
  readonly records: Fields;
  /** Of the hashes of items of generations of even and of odd number. */
  readonly items: readonly [even: Fields, odd: Fields];
}

/** What the store holds after the states were committed. */
export const dumpOf = ({ learner, skills, items }: ReplayedStates): LearnerDump => ({
  records: [
    [Buffer.from(learnerField), encodeLearner(learner)],
    ...[...skills].map(([skillId, skill]) => [Buffer.from(skillField(skillId)), encodeSkill(skill)] as const),
  ],
  items: [itemFields(items[0]), itemFields(items[1])],
});

const itemFields = (items: ReadonlyMap<string, ItemTrace>): Fields =>
  [...items].map(([itemId, trace]) => [hashItem(itemId), encodeItem(trace)] as const);
