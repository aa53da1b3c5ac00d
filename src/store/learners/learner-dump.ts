import type { ReplayedStates } from '../../domain/history/replay.js';
import type { ItemTrace } from '../../domain/tracing/traces.js';
import { hashItem } from '../models/item-store.js';
import { encodeItem } from './item-codec.js';
import { encodeLearner, learnerField, skillField } from './learner-codec.js';
import { encodeSkill } from './skill-codec.js';

export type HashFields = readonly (readonly [field: Buffer, value: Buffer])[];

export type LearnerDump = ReturnType<typeof dumpLearner>;

/** Hash fields after a commit of the states, without the goal. */
export const dumpLearner = ({ learner, skills, items: [even, odd] }: ReplayedStates) => ({
  records: [
    [Buffer.from(learnerField), encodeLearner(learner)],
    ...[...skills].map(([skillId, skill]) => [Buffer.from(skillField(skillId)), encodeSkill(skill)] as const),
  ] as HashFields,
  items: [encodeItemFields(even), encodeItemFields(odd)] as readonly [even: HashFields, odd: HashFields],
});

const encodeItemFields = (items: ReadonlyMap<string, ItemTrace>): HashFields =>
  [...items].map(([itemId, trace]) => [hashItem(itemId), encodeItem(trace)] as const);
