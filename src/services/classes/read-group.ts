/** Figures of a class: learners from Redis, answers of two periods from ClickHouse. */
import Type, { type Static } from 'typebox';
import type { Compute } from '../../compute/compute.js';
import type { Call } from '../../contracts/access/call.js';
import { findSkillName } from '../../domain/advice/study-advice.js';
import { dayMs, formatDate, round4, roundFields, toDay } from '../../domain/base/common.js';
import { findPlacement } from '../../domain/catalogue/catalogue.js';
import { type ChangeSums, computeChange } from '../../domain/classes/class-change.js';
import { type ClassSkill, rankByNeed } from '../../domain/classes/class-skills.js';
import { computeFirstDay } from '../../domain/learner/velocity.js';
import { groupBy } from '../../lists.js';
import type { GroupStore } from '../../store/groups/group-store.js';
import type { ProfileStore } from '../../store/groups/profile-store.js';
import type { ClassAnswers } from '../../warehouse/reads/class-answers.js';
import { groupNotFound } from '../groups/manage-groups.js';
import { type HistoryPorts, readHistory } from '../learners/read-mastery.js';
import { collectClass } from './collect-class.js';
import type { ClassMasteryPorts } from './read-class-mastery.js';

export interface GroupReadPorts
  extends ClassMasteryPorts,
    Pick<HistoryPorts<ClassAnswers>, 'history' | 'logger' | 'sourceLagSeconds'> {
  readonly forecaster: Pick<Compute, 'forecast'>;
  readonly groups: Pick<GroupStore, 'read'>;
  readonly profiles: Pick<ProfileStore, 'readMany'>;
}

/** UTC days. The period includes today. */
export const GroupReadQuery = Type.Object({
  days: Type.Integer({ minimum: 7, maximum: 365, default: 28 }),
});
export type GroupCall = Call<Static<typeof GroupReadQuery>>;

export type OpenClass = Awaited<ReturnType<typeof openClass>>;

export async function openClass(ports: GroupReadPorts, { tenant, query }: GroupCall, groupId: string) {
  const [group, model] = await Promise.all([
    ports.groups.read(tenant, groupId),
    ports.models.current(tenant),
  ]);
  if (group === null) throw groupNotFound();
  const now = ports.now();
  const from = computeFirstDay(query.days, toDay(now)) * dayMs;
  const userIds = [...group.members.keys()];
  const period = { userIds, since: formatDate(from), before: formatDate(from - query.days * dayMs) };
  return { tenant, group, model, userIds, period, now };
}

export async function readGroupSkills(ports: GroupReadPorts, call: GroupCall, groupId: string) {
  const opened = await openClass(ports, call, groupId);
  const { tenant, model, period } = opened;
  return ports.limit(tenant, async () => {
    const [{ tallies }, { lag, found }] = await Promise.all([
      collectClass(ports, opened, call),
      readHistory(ports, (history) =>
        Promise.all([history.fetchSkills(tenant, period), history.fetchHardItems(tenant, period)]),
      ),
    ]);
    const sums = found && new Map(found[0].map((row) => [row.skill_id, row]));
    const items = found && groupBy(found[1], ({ skill_id }) => skill_id);
    const describe = ({ skillId, expected, mastered, ...counts }: ClassSkill) => ({
      ...{ skill_id: skillId, name: findSkillName({ model }, skillId), ...counts },
      section: findPlacement(model.catalogue, skillId).section,
      answers: sums && (sums.get(skillId)?.answers ?? 0),
      expected_accuracy: roundFields(expected),
      mastered: round4(mastered / counts.learners),
      change: sums && describeChange(sums.get(skillId)),
      hardest_items: items && (items.get(skillId) ?? []).map(({ skill_id: _, ...item }) => roundFields(item)),
    });
    return {
      ...{ group_id: groupId, days: call.query.days, since: period.since, learners: opened.userIds.length },
      source_lag_seconds: found && lag,
      skills: rankByNeed(tallies).map(describe),
    };
  });
}

export function describeChange(sums: ChangeSums | undefined) {
  const change = sums === undefined ? null : computeChange(sums);
  return change && roundFields(change);
}
