import type { ReplayedStates } from '../../domain/history/replay.js';
import type { ItemTrace } from '../../domain/tracing/traces.js';
import { hashItem } from '../models/item-store.js';
import { encodeItem } from './item-codec.js';
import { encodeLearner, learnerField, skillField } from './learner-codec.js';
import { encodeSkill } from './skill-codec.js';

export type Fields = readonly (readonly [field: Buffer, value: Buffer])[];

export type LearnerDump = ReturnType<typeof dumpOf>;

/** Hash fields after a commit of the states, without the goal. */
export const dumpOf = ({ learner, skills, items: [even, odd] }: ReplayedStates) => ({
  records: [
    [Buffer.from(learnerField), encodeLearner(learner)],
    ...[...skills].map(([skillId, skill]) => [Buffer.from(skillField(skillId)), encodeSkill(skill)] as const),
  ] as Fields,
  items: [itemFields(even), itemFields(odd)] as readonly [even: Fields, odd: Fields],
});

const itemFields = (items: ReadonlyMap<string, ItemTrace>): Fields =>
  [...items].map(([itemId, trace]) => [hashItem(itemId), encodeItem(trace)] as const);
