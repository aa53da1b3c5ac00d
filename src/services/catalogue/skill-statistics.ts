import type { Call } from '../../contracts/access/call.js';
import { findIdProblem } from '../../contracts/schema/ids.js';
import { formatDay } from '../../domain/base/calendar.js';
import { roundFields } from '../../domain/base/common.js';
import { computeShareInterval } from '../../domain/base/prediction-metrics.js';
import { ApiError } from '../../errors.js';
import type { ItemPosition, SkillReads, SkillSums } from '../../warehouse/reads/skill-statistics.js';
import { type SourceLagPorts, type StorageWaitPorts, waitUntilStored } from '../outbox/wait-until-stored.js';
import {
  buildPage,
  createCursors,
  decodeIdCursor,
  defaultPageLimit,
  encodeIdCursor,
  encodeList,
  type PageQuery,
} from '../paging/pages.js';
import type { SkillPorts } from './read-skills.js';
import type { TenantCalendars } from './tenant-calendars.js';

export interface StatisticsPorts
  extends SourceLagPorts,
    StorageWaitPorts,
    TenantCalendars,
    Pick<SkillPorts, 'skills'> {
  readonly statistics: SkillReads;
}

export async function listSkillStatistics(
  { statistics, sourceLagSeconds }: StatisticsPorts,
  { tenant, query: { limit = defaultPageLimit, cursor } }: Call<PageQuery>,
): Promise<string> {
  const after = decodeIdCursor(cursor);
  const lag = await sourceLagSeconds();
  const found = await statistics.listSkills(tenant, after, limit + 1);
  const page = buildPage(found, limit, ({ skill_id }) => encodeIdCursor(skill_id));
  return encodeList({ source_lag_seconds: lag }, 'skills', page);
}

const cohortWeeks = 26;

export async function readSkillStatistics(ports: StatisticsPorts, { tenant }: Call, skillId: string) {
  const { statistics, sourceLagSeconds, calendarOf, now } = ports;
  const lag = await sourceLagSeconds();
  const sums = await readAnsweredSkill(ports, tenant, skillId);
  const curve = await statistics.fetchLearningCurve(tenant, skillId);
  const { toDay } = await calendarOf(tenant);
  const since = formatDay(toDay(now()) - 7 * (cohortWeeks - 1));
  const cohorts = await statistics.fetchCohorts(tenant, skillId, since, cohortWeeks);
  const learning_curve = curve.map((step) =>
    roundFields({ ...step, ...computeShareInterval(step.accuracy, step.learners) }),
  );
  return { ...sums, learning_curve, cohorts, source_lag_seconds: lag };
}

/** If no answer is stored, waits for answers in flight. */
async function readAnsweredSkill(
  ports: StatisticsPorts,
  tenant: string,
  skillId: string,
): Promise<SkillSums> {
  const read = () => ports.statistics.findSkill(tenant, skillId);
  const stored = await read();
  if (stored !== null) return stored;
  if (await ports.skills.has(tenant, skillId)) await waitUntilStored(ports);
  const now = await read();
  if (now === null) throw new ApiError('SKILL_NOT_FOUND', 'No answers recorded for this skill_id.');
  return now;
}

export async function listSkillItems(
  ports: StatisticsPorts,
  { tenant, query: { limit = defaultPageLimit, cursor } }: Call<PageQuery>,
  skillId: string,
): Promise<string> {
  const after = parsePosition(itemCursors.decode(cursor) ?? '');
  const lag = await ports.sourceLagSeconds();
  const found = await ports.statistics.listItems(tenant, skillId, after, limit + 1);
  if (found.length === 0 && after === null) await readAnsweredSkill(ports, tenant, skillId);
  const page = buildPage(found, limit, ({ accuracy, item_id }) =>
    itemCursors.encode(`${accuracy} ${item_id}`),
  );
  return encodeList({ skill_id: skillId, source_lag_seconds: lag }, 'items', page, describeItem);
}

function parsePosition(text: string): ItemPosition | null {
  const [accuracy = ''] = text.split(' ');
  const item_id = text.slice(accuracy.length + 1);
  const isPlace = Number(accuracy) >= 0 && Number(accuracy) <= 1 && findIdProblem(item_id, true) === null;
  return isPlace ? { accuracy: Number(accuracy), item_id } : null;
}

const itemCursors = createCursors('item:', (text) => (parsePosition(text) === null ? null : text));

/**
 * `beyond`: accuracy minus prediction, with its 95 % interval. A misleading item also does worse than predicted: the
 * interval is below 0.
 */
function describeItem(item: Awaited<ReturnType<SkillReads['listItems']>>[number]): object {
  const { accuracy, answers, p_correct, misleading } = item;
  const { low, high } = computeShareInterval(accuracy, answers);
  const difference = { beyond: accuracy - p_correct, low: low - p_correct, high: high - p_correct };
  return roundFields({ ...item, ...difference, misleading: misleading && difference.high < 0 });
}
