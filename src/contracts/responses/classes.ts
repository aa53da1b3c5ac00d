import Type, { type TProperties } from 'typebox';
import { sections } from '../../domain/base/common.js';
import { attentionCodes } from '../../domain/classes/class-attention.js';
import { DisplayName, GroupKind, GroupName } from '../learners/groups.js';
import { StoredId } from '../schema/ids.js';
import { nullable } from '../schema/validate.js';
import { Amount, Change, Count, Day, lagField, namedFields, Share } from './shared-schemas.js';

const classChange = Type.Object(
  { ...namedFields(Change, 'mean', 'low', 'high'), learners: Type.Integer({ minimum: 5 }) },
  { description: 'Change of the share of correct answers, with an 80 % interval. Each learner counts once.' },
);

const opened = {
  group_id: StoredId,
  days: Type.Integer({ minimum: 7, maximum: 365 }),
  since: Day,
  learners: Count,
  ...lagField,
};

export const HardItem = Type.Object({
  item_id: StoredId,
  answers: Count,
  ...namedFields(Share, 'accuracy', 'expected'),
});

export const GroupSkill = Type.Object({
  ...{ skill_id: StoredId, name: Type.String(), section: nullable(Type.Enum([...sections])) },
  ...namedFields(Count, 'learners', 'struggling', 'stuck'),
  answers: nullable(Count),
  expected_accuracy: Type.Object(namedFields(Share, 'mean', 'q1', 'median', 'q3')),
  mastered: Type.Number({ minimum: 0, maximum: 1, description: 'Share of the learners.' }),
  change: nullable(classChange),
  hardest_items: nullable(Type.Array(HardItem, { maxItems: 3 })),
});
export const GroupSkills = Type.Object({ ...opened, skills: Type.Array(GroupSkill) });

const learnerEntry = (more: TProperties) =>
  Type.Object({ user_id: StoredId, display_name: nullable(DisplayName), ...more, text: Type.String() });
const skillEntry = (more: TProperties) =>
  Type.Object({ skill_id: StoredId, skill_name: Type.String(), ...more, text: Type.String() });

const attention = learnerEntry({
  reason: Type.Enum([...attentionCodes]),
  ...{ skill_id: nullable(StoredId), skill_name: nullable(Type.String()) },
});
const reteach = skillEntry({ ...namedFields(Count, 'struggling', 'learners'), expected_accuracy: Share });

const changedSkills = Type.Array(skillEntry({ change: classChange }), { maxItems: 5 });

export const GroupSummary = Type.Object({
  ...{ ...opened, name: GroupName, kind: GroupKind },
  ...namedFields(Count, 'with_answers', 'active'),
  ...namedFields(Count, 'on_track', 'at_risk', 'no_goal', 'goal_passed', 'idle', 'few_answers'),
  answers_per_day: nullable(Amount),
  change: nullable(classChange),
  attention: Type.Array(attention, { maxItems: 10 }),
  reteach: Type.Array(reteach, { maxItems: 5 }),
  declined: nullable(Type.Object({ skills: changedSkills })),
  improved: nullable(
    Type.Object({
      skills: changedSkills,
      learners: Type.Array(learnerEntry({ change: Change }), { maxItems: 5 }),
    }),
  ),
});
