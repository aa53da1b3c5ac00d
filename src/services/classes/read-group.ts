/** Figures of a class: learners from Redis, answers of two periods from ClickHouse. */
import Type, { type Static } from 'typebox';
import type { Compute } from '../../compute/compute.js';
import type { Call } from '../../contracts/access/call.js';
import { findSkillName } from '../../domain/advice/study-advice.js';
import { formatDay, getCalendar } from '../../domain/base/calendar.js';
import { dayMs, round4, roundFields } from '../../domain/base/common.js';
import { findPlacement } from '../../domain/catalogue/catalogue.js';
import { type ChangeSums, computeChange } from '../../domain/classes/class-change.js';
import { classConstants } from '../../domain/classes/class-constants.js';
import {
  type ClassSkill,
  rankByNeed,
  type SkillTallies,
  tallySkill,
} from '../../domain/classes/class-skills.js';
import { buildSkillViews, type SkillView } from '../../domain/learner/skill-view.js';
import { computeFirstDay } from '../../domain/learner/velocity.js';
import { computeChangePoints } from '../../domain/prediction/term-texts.js';
import { isPlateau } from '../../domain/tracing/plateau.js';
import { isRapidFlagged } from '../../domain/tracing/response-times.js';
import { isFalling } from '../../domain/tracing/trend.js';
import { groupBy, splitIntoParts } from '../../lists.js';
import { mapInSlices } from '../../slices.js';
import type { GroupStore } from '../../store/groups/group-store.js';
import type { ProfileStore } from '../../store/groups/profile-store.js';
import type { LearnerStates } from '../../store/learners/learner-reads.js';
import type { ClassAnswers } from '../../warehouse/reads/class-answers.js';
import { groupNotFound } from '../groups/manage-groups.js';
import { type HistoryPorts, readHistory } from '../learners/read-mastery.js';
import { type ClassMasteryPorts, learnersPerPage } from './read-class-mastery.js';

export interface GroupReadPorts
  extends ClassMasteryPorts,
    Pick<HistoryPorts<ClassAnswers>, 'history' | 'logger' | 'sourceLagSeconds'> {
  readonly forecaster: Pick<Compute, 'forecast'>;
  readonly groups: Pick<GroupStore, 'read'>;
  readonly profiles: Pick<ProfileStore, 'readMany'>;
}

/** Local days. The period includes today. */
export const GroupReadQuery = Type.Object({
  days: Type.Integer({ minimum: 7, maximum: 365, default: 28 }),
});
export type GroupCall = Call<Static<typeof GroupReadQuery>>;

export type OpenClass = Awaited<ReturnType<typeof openClass>>;

export async function openClass({ groups, models, now }: GroupReadPorts, call: GroupCall, groupId: string) {
  const { tenant, query, throwIfDisconnected } = call;
  const [group, model] = await Promise.all([groups.read(tenant, groupId), models.current(tenant)]);
  if (group === null) throw groupNotFound();
  const at = now();
  const calendar = getCalendar(model.catalogue.timeZone);
  const today = calendar.toDay(at);
  const firstDay = computeFirstDay(query.days, today);
  const userIds = [...group.members.keys()];
  const period = { userIds, since: formatDay(firstDay), before: formatDay(firstDay - query.days) };
  return { tenant, group, model, userIds, period, calendar, today, firstDay, now: at, throwIfDisconnected };
}

export type ClassLearner = ReturnType<typeof describeLearner>;

/** Members with answers, and their sums by skill. An unreadable learner does not affect the others. */
export async function collectClass({ learners, logger }: GroupReadPorts, opened: OpenClass) {
  const tallies: SkillTallies = new Map();
  const collected: ClassLearner[] = [];
  for (const userIds of splitIntoParts(opened.userIds, learnersPerPage)) {
    opened.throwIfDisconnected();
    const packed = await learners.readPacked(opened.tenant, userIds);
    await mapInSlices(packed.entries(), ([i, one]) => {
      try {
        const found = one.unpack();
        if (found !== null) collected.push(describeLearner(userIds[i] as string, found, opened, tallies));
      } catch (error) {
        logger.error({ err: error }, 'cannot read a learner of a class; the figures omit the learner');
      }
    });
  }
  return { tallies, learners: collected };
}

function describeLearner(userId: string, found: LearnerStates, opened: OpenClass, tallies: SkillTallies) {
  const { learner, skills } = found;
  const { model, calendar, today, now } = opened;
  const views = buildSkillViews(skills, model, now);
  for (const view of views) tallySkill(tallies, view, { learner, model, now });
  const recent = views.filter(({ state }) => state.lastAttemptAt > now - classConstants.recentDays * dayMs);
  const lastAt = views.reduce((last, { state }) => Math.max(last, state.lastAttemptAt), 0);
  const listRecent = (isListed: (view: SkillView) => boolean, order: (view: SkillView) => number) =>
    recent.filter(isListed).sort((a, b) => order(a) - order(b));
  return {
    userId,
    answers: learner.attempts,
    idleDays: today - calendar.toDay(lastAt),
    fallPoints: isFalling(learner.trend) ? computeChangePoints(learner.trend) : null,
    rapidSkills: listRecent(
      ({ state }) => isRapidFlagged(state.rapid),
      ({ state }) => -state.attempts,
    ).map(({ skillId }) => skillId),
    plateaus: listRecent(
      ({ state }) => isPlateau(state.plateau),
      ({ mastery }) => mastery,
    ),
  };
}

export async function readGroupSkills(ports: GroupReadPorts, call: GroupCall, groupId: string) {
  const opened = await openClass(ports, call, groupId);
  const { tenant, model, period } = opened;
  return ports.limit(tenant, async () => {
    const [{ tallies }, { lag, found }] = await Promise.all([
      collectClass(ports, opened),
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
