/** How a tenant's learners do on its skills: what is stored of all of them. */
import { round1, round4, round6 } from '../../domain/base/common.js';
import type { SkillStatistics, SkillSums } from '../../warehouse/reads/skill-statistics.js';
import { idAfter, listJson, type PageQuery, pageLimit, pageOfIds } from './pages.js';
import { orUnavailable, type StoredPorts } from './stored.js';

export interface StatisticsPorts extends StoredPorts {
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
  const { nextCursor } = pageOfIds(
    found.map(({ skillId }) => skillId),
    limit,
  );
  const items = found.slice(0, limit);
  return listJson(
    {},
    { name: 'skills', items, describe: describeInList },
    { next_cursor: nextCursor, source_lag_seconds: lag },
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

const describeInList = (sums: SkillSums): object => ({
  ...describeSums(sums),
  velocity_per_attempt: round6(sums.velocity[1]),
  efficiency_index: orNull(sums.efficiencyIndex, round1),
  correct_per_minute: orNull(sums.correctPerMinute, round4),
});

const orNull = (value: number | null, shown: (x: number) => number): number | null =>
  value === null ? null : shown(value);
