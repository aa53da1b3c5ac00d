/** What a teacher should know of a class today. */
import { findSkillName } from '../../domain/advice/study-advice.js';
import { round4, round6 } from '../../domain/base/common.js';
import type { TenantModel } from '../../domain/catalogue/tenant-model.js';
import { selectAttention, selectStuckSkill } from '../../domain/classes/class-attention.js';
import * as changes from '../../domain/classes/class-change.js';
import { classConstants } from '../../domain/classes/class-constants.js';
import {
  describeNeed,
  isForReteaching,
  rankByNeed,
  type SkillTallies,
} from '../../domain/classes/class-skills.js';
import { computeStatus, type Status } from '../../domain/classes/learner-status.js';
import type { GoalStanding } from '../../domain/score/goal.js';
import { computeSum, distinct, groupBy } from '../../lists.js';
import type { LearnerSums, SkillSums } from '../../warehouse/reads/class-answers.js';
import { defaultForecast, forecastInParts } from '../forecasts/forecast-scores.js';
import { readHistory } from '../learners/read-mastery.js';
import {
  type ClassLearner,
  collectClass,
  describeChange,
  type GroupCall,
  type GroupReadPorts,
  type OpenClass,
  openClass,
} from './read-group.js';

const { others: maxListed } = classConstants.listed;
/** With the lowest masteries. */
const maxStuckLearners = 20;

export async function readGroupSummary(ports: GroupReadPorts, call: GroupCall, groupId: string) {
  const opened = await openClass(ports, call, groupId);
  const { tenant, group, model, userIds, period, today, firstDay } = opened;
  const { days } = call.query;
  return ports.limit(tenant, async () => {
    const { tallies, learners, stuck, goals, sums, lag } = await gatherClass(ports, opened);
    const subjects = learners.map((one) => {
      const { status, targetDate = null, probability = null } = goals.get(one.userId) ?? { status: 'none' };
      const standing = {
        status: computeStatus({ ...one, goalStatus: status }),
        targetDate,
        chance: probability,
      };
      return { ...one, ...standing, stuck: stuck.get(one.userId) ?? null };
    });
    const attention = selectAttention(subjects, (skillId) => findSkillName({ model }, skillId), today);
    const risen = sums && selectRisenLearners(sums.learners);
    const listed = [...attention, ...(risen ?? [])].map(({ userId }) => userId);
    const profiles = await ports.profiles.readMany(tenant, distinct(listed));
    const nameLearner = ({ userId }: { readonly userId: string }) => ({
      ...{ user_id: userId, display_name: profiles.get(userId)?.displayName ?? null },
    });
    return {
      ...{ group_id: groupId, name: group.name, kind: group.kind, days, since: period.since },
      ...{ learners: userIds.length, with_answers: learners.length },
      active: learners.filter(({ idleDays }) => today - idleDays >= firstDay).length,
      ...countStatuses(subjects.map(({ status }) => status)),
      answers_per_day: sums && round6(computeSum(sums.learners.map(({ answers }) => answers)) / days),
      change: sums && describeChange(changes.sumChanges(sums.learners)),
      source_lag_seconds: lag,
      attention: attention.map(({ code, text, skillId, ...one }) => ({
        ...{ ...nameLearner(one), reason: code, text, skill_id: skillId },
        skill_name: skillId === null ? null : findSkillName({ model }, skillId),
      })),
      reteach: listReteach(tallies, model),
      improved: sums && {
        skills: listChangedSkills(sums.skills, 1, model),
        learners: (risen ?? []).map(({ rise, ...one }) => ({
          ...{ ...nameLearner(one), change: round4(rise), text: changes.describeChange(rise) },
        })),
      },
      declined: sums && { skills: listChangedSkills(sums.skills, -1, model) },
    };
  });
}

async function gatherClass(ports: GroupReadPorts, opened: OpenClass) {
  const { tenant, period } = opened;
  const collected = collectClass(ports, opened);
  const [{ tallies, learners }, stuck, goals, { lag, found }] = await Promise.all([
    collected,
    collected.then((some) => findStuckSkills(ports, tenant, some.learners)),
    fetchGoals(ports, opened),
    readHistory(ports, (history) =>
      Promise.all([history.fetchSkills(tenant, period), history.fetchLearners(tenant, period)]),
    ),
  ]);
  const sums = found && { skills: found[0], learners: found[1] };
  return { tallies, learners, stuck, goals, sums, lag: found && lag };
}

async function findStuckSkills(ports: GroupReadPorts, tenant: string, learners: readonly ClassLearner[]) {
  const lowest = ({ plateaus }: ClassLearner): number => plateaus[0]?.mastery ?? 1;
  const chosen = learners
    .filter(({ plateaus }) => plateaus.length > 0)
    .sort((a, b) => lowest(a) - lowest(b))
    .slice(0, maxStuckLearners)
    .map(({ userId, plateaus }) => ({ userId, skillIds: plateaus.map(({ skillId }) => skillId) }));
  const [userIds, skillIds] = [chosen.map(({ userId }) => userId), chosen.flatMap((one) => one.skillIds)];
  const { found } = await readHistory(ports, (history) =>
    history.fetchLatest(tenant, { userIds, skillIds: distinct(skillIds) }),
  );
  const latest = found && groupBy(found, ({ userId }) => userId);
  const select = (userId: string, ids: readonly string[]) =>
    selectStuckSkill(ids, latest && (latest.get(userId) ?? []));
  return new Map(chosen.map((one) => [one.userId, select(one.userId, one.skillIds)]));
}

async function fetchGoals({ forecaster, logger }: GroupReadPorts, opened: OpenClass) {
  const { tenant, userIds } = opened;
  const order = { ...defaultForecast, tenant, userIds, standing: true } as const;
  const results = await forecastInParts(forecaster, order, opened.throwIfDisconnected);
  const goals = new Map<string, GoalStanding>();
  for (const [i, result] of results.entries()) {
    if (result instanceof Error) logger.error({ err: result, tenant }, 'cannot assess a goal');
    else if (result !== null) goals.set(userIds[i] as string, JSON.parse(result));
  }
  return goals;
}

/** Each learner with answers counts once. */
function countStatuses(statuses: readonly Status[]) {
  const count = (...names: readonly Status[]) => statuses.filter((status) => names.includes(status)).length;
  return {
    ...{
      on_track: count('on_track', 'reached'),
      at_risk: count('at_risk', 'unlikely'),
      no_goal: count('none'),
    },
    ...{ goal_passed: count('expired'), idle: count('idle'), few_answers: count('few') },
  };
}

const listReteach = (tallies: SkillTallies, model: TenantModel) =>
  rankByNeed(tallies)
    .filter(isForReteaching)
    .slice(0, maxListed)
    .map((skill) => ({
      ...{ skill_id: skill.skillId, skill_name: findSkillName({ model }, skill.skillId) },
      ...{ struggling: skill.struggling, learners: skill.learners, text: describeNeed(skill) },
      expected_accuracy: round4(skill.expected.mean),
    }));

/** Largest changes first. */
const listChangedSkills = (sums: readonly SkillSums[], sign: -1 | 1, model: TenantModel) =>
  sums
    .filter((one) => changes.findClearSign(one) === sign)
    .sort((a, b) => sign * (b.mean - a.mean))
    .slice(0, maxListed)
    .map((one) => ({
      ...{ skill_id: one.skill_id, skill_name: findSkillName({ model }, one.skill_id) },
      ...{ change: describeChange(one), text: changes.describeChange(one.mean) },
    }));

const selectRisenLearners = (sums: readonly LearnerSums[]) =>
  sums
    .filter(changes.hasClearRise)
    .map((one) => ({ userId: one.userId, rise: changes.computeRise(one) }))
    .sort((a, b) => b.rise - a.rise)
    .slice(0, maxListed);
