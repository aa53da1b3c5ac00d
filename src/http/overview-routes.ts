/** How all learners of a tenant do on its skills, and how well its model knows them. */
import * as versions from '../services/models/versions.js';
import * as quality from '../services/read/model-quality.js';
import { PageQuery } from '../services/read/pages.js';
import * as skills from '../services/read/skill-statistics.js';
import { ok } from './replies.js';
import { type Route, route } from './route.js';
import { reads, smallBody } from './rules.js';

export type OverviewPorts = skills.StatisticsPorts & quality.QualityPorts & versions.VersionPorts;

const rollback = { scope: 'operator', body: smallBody(versions.RollbackRequest) } as const;

export const overviewRoutes = (ports: OverviewPorts): readonly Route[] => [
  route('GET', '/api/v1/skill-statistics', reads(PageQuery), async ({ tenant, query }) =>
    ok(await skills.listSkillStatistics(ports, tenant, query)),
  ),
  route('GET', '/api/v1/skills/:skill_id/statistics', reads(), async ({ tenant }, skillId) =>
    ok(await skills.readSkillStatistics(ports, tenant, skillId)),
  ),
  route('GET', '/api/v1/skills/:skill_id/items', reads(PageQuery), async ({ tenant, query }, skillId) =>
    ok(await skills.listSkillItems(ports, tenant, skillId, query)),
  ),
  route('GET', '/api/v1/model/versions', reads(PageQuery), async ({ tenant, query }) =>
    ok(await versions.listVersions(ports, tenant, query)),
  ),
  route('GET', '/api/v1/model/versions/:version', reads(PageQuery), async ({ tenant, query }, version) =>
    ok(await versions.readVersion(ports, tenant, version, query)),
  ),
  route('GET', '/api/v1/model/reliability', reads(quality.ReliabilityQuery), async ({ tenant, query }) =>
    ok(await quality.readReliability(ports, tenant, query)),
  ),
  route('GET', '/api/v1/model/coverage', reads(), async ({ tenant }) =>
    ok(await quality.readCoverage(ports, tenant)),
  ),
  route('POST', '/api/v1/model/rollback', rollback, async ({ tenant, body }) =>
    ok(await versions.rollBack(ports, tenant, body), 'Version in force'),
  ),
];
