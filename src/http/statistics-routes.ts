import { PageQuery } from '../services/read/pages.js';
import {
  listSkillItems,
  listSkillStatistics,
  readSkillStatistics,
  type StatisticsPorts,
} from '../services/read/skill-statistics.js';
import { ok } from './replies.js';
import { type Route, route } from './route.js';
import { reads } from './rules.js';

/** How all learners of the tenant do. */
export const statisticsRoutes = (ports: StatisticsPorts): readonly Route[] => [
  route('GET', '/api/v1/skill-statistics', reads(PageQuery), async ({ tenant, query }) =>
    ok(await listSkillStatistics(ports, tenant, query)),
  ),
  route('GET', '/api/v1/skills/:skill_id/statistics', reads(), async ({ tenant }, skillId) =>
    ok(await readSkillStatistics(ports, tenant, skillId)),
  ),
  route('GET', '/api/v1/skills/:skill_id/items', reads(PageQuery), async ({ tenant, query }, skillId) =>
    ok(await listSkillItems(ports, tenant, skillId, query)),
  ),
];
