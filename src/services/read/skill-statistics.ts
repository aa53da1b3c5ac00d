/** How a tenant's learners do on its skills: what is stored of all of them. */
import { learningIdProblem } from '../../contracts/ids.js';
import { dayMs, dayOf, round1, round4, round6 } from '../../domain/base/common.js';
import { shareInterval } from '../../domain/base/metrics.js';
import { ApiError } from '../../errors.js';
import type {
  CurveStep,
  ItemPlace,
  ItemSums,
  SkillStatistics,
  SkillSums,
} from '../../warehouse/reads/skill-statistics.js';
import { allStored, type StoringPorts } from '../catalogue/write-skill.js';
import { createCursors, cursorAfter, idAfter, listJson, type PageQuery, pageLimit, pageOf } from './pages.js';
import type { SkillPorts } from './read-skills.js';
import { orUnavailable, type StoredPorts } from './stored.js';

export interface StatisticsPorts extends StoredPorts, StoringPorts, Pick<SkillPorts, 'skills'> {
  readonly statistics: SkillStatistics;
}

/** JSON of GET /api/v1/skill-statistics, by UTF-8 bytes of skill_id. @throws ApiError INVALID_REQUEST, UNAVAILABLE */
export async function listSkillStatistics(
  { statistics, sourceLagSeconds }: StatisticsPorts,
  tenant: string,
  { limit = pageLimit, cursor }: PageQuery,
): Promise<string> {
  const after = idAfter(cursor);
  const lag = await sourceLagSeconds();
  const found = await orUnavailable(statistics.list(tenant, after, limit + 1));
  const { items, next_cursor } = pageOf(found, limit, ({ skillId }) => cursorAfter(skillId));
  return listJson(
    {},
    { name: 'skills', items, describe: describeInList },
    { next_cursor, source_lag_seconds: lag },
  );
}

const describeSums = (sums: SkillSums): object => ({
  skill_id: sums.skillId,
  learners: sums.learners,
  answers: sums.answers,
  accuracy: round4(sums.accuracy),
  mean_p_correct: round4(sums.meanPCorrect),
  plateau_share: round4(sums.plateauShare),
});

const cohortWeeks = 26;

/** YYYY-MM-DD of the Monday that many weeks before that of `now`. 1970-01-01 was a Thursday. */
function mondayBefore(now: number, weeks: number): string {
  const today = dayOf(now);
  return new Date((today - ((today + 3) % 7) - 7 * weeks) * dayMs).toISOString().slice(0, 10);
}

/** Data of GET /api/v1/skills/{skill_id}/statistics. @throws ApiError SKILL_NOT_FOUND, UNAVAILABLE */
export async function readSkillStatistics(
  ports: StatisticsPorts,
  tenant: string,
  skillId: string,
): Promise<object> {
  const { statistics, sourceLagSeconds, now } = ports;
  const lag = await sourceLagSeconds();
  const sums = await answeredSkill(ports, tenant, skillId);
  const curve = await orUnavailable(statistics.learningCurve(tenant, skillId));
  const since = mondayBefore(now(), cohortWeeks - 1);
  const cohorts = await orUnavailable(statistics.cohorts(tenant, skillId, since, cohortWeeks));
  const [q1, median, q3] = sums.velocity.map(round6);
  return {
    ...describeSums(sums),
    velocity_per_attempt: { q1, median, q3 },
    learning_curve: curve.map(describeStep),
    cohorts: cohorts.map(({ accuracy, meanMastery, ...week }) => ({
      ...week,
      accuracy: round4(accuracy),
      mean_mastery: round4(meanMastery),
    })),
    source_lag_seconds: lag,
  };
}

/** Where there is none yet, answers of just now are waited for. @throws ApiError SKILL_NOT_FOUND, UNAVAILABLE */
async function answeredSkill(ports: StatisticsPorts, tenant: string, skillId: string): Promise<SkillSums> {
  const read = () => orUnavailable(ports.statistics.ofSkill(tenant, skillId));
  const stored = await read();
  if (stored !== null) return stored;
  if (await ports.skills.has(tenant, skillId)) await allStored(ports);
  const now = await read();
  if (now === null) throw new ApiError('SKILL_NOT_FOUND', 'No answer on this skill_id was counted');
  return now;
}

function describeStep({ attempt, learners, correct, pCorrect, mastery }: CurveStep): object {
  const { low, high } = shareInterval(correct, learners);
  return {
    ...{ attempt, learners },
    accuracy: round4(correct / learners),
    ...{ low: round4(low), high: round4(high) },
    ...{ p_correct: round4(pCorrect), mastery: round4(mastery) },
  };
}

const describeInList = (sums: SkillSums): object => ({
  ...describeSums(sums),
  velocity_per_attempt: round6(sums.velocity[1]),
  efficiency_index: orNull(sums.efficiencyIndex, round1),
  correct_per_minute: orNull(sums.correctPerMinute, round4),
});

const orNull = (value: number | null, shown: (x: number) => number): number | null =>
  value === null ? null : shown(value);

/** JSON of GET /api/v1/skills/{skill_id}/items. @throws ApiError INVALID_REQUEST, SKILL_NOT_FOUND, UNAVAILABLE */
export async function listSkillItems(
  ports: StatisticsPorts,
  tenant: string,
  skillId: string,
  { limit = pageLimit, cursor }: PageQuery,
): Promise<string> {
  const after = placeOf(itemCursors.decode(cursor) ?? '');
  const lag = await ports.sourceLagSeconds();
  const found = await orUnavailable(ports.statistics.items(tenant, skillId, after, limit + 1));
  if (found.length === 0 && after === null) await answeredSkill(ports, tenant, skillId);
  const { items, next_cursor } = pageOf(found, limit, ({ accuracy, itemId }) =>
    itemCursors.encode(`${accuracy} ${itemId}`),
  );
  return listJson(
    { skill_id: skillId },
    { name: 'items', items, describe: describeItem },
    { next_cursor, source_lag_seconds: lag },
  );
}

/** Accuracy and id of the last item of the page before; null for what is no such text. */
function placeOf(text: string): ItemPlace | null {
  const [accuracy = ''] = text.split(' ');
  const itemId = text.slice(accuracy.length + 1);
  const isPlace = Number(accuracy) >= 0 && Number(accuracy) <= 1 && learningIdProblem(itemId) === null;
  return isPlace ? { accuracy: Number(accuracy), itemId } : null;
}

const itemCursors = createCursors('item:', (text) => (placeOf(text) === null ? null : text));

function describeItem(item: ItemSums): object {
  const { low, high } = shareInterval(item.correct, item.answers);
  return {
    ...{ item_id: item.itemId, learners: item.learners, answers: item.answers },
    accuracy: round4(item.accuracy),
    expected: round4(item.expected),
    p_correct: round4(item.pCorrect),
    beyond: round4(item.accuracy - item.pCorrect),
    low: round4(low - item.pCorrect),
    high: round4(high - item.pCorrect),
    median_seconds: orNull(item.medianSeconds, round1),
    sure_and_wrong: orNull(item.sureAndWrong, round4),
    misleading: item.misleading,
  };
}
