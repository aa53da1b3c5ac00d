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
  route('GET /api/v1/skill-statistics', reads(PageQuery), ok(skills.listSkillStatistics, ports)),
  route('GET /api/v1/skills/:skill_id/statistics', reads(), ok(skills.readSkillStatistics, ports)),
  route('GET /api/v1/skills/:skill_id/items', reads(PageQuery), ok(skills.listSkillItems, ports)),
  route('GET /api/v1/model/versions', reads(PageQuery), ok(versions.listVersions, ports)),
  route('GET /api/v1/model/versions/:version', reads(PageQuery), ok(versions.readVersion, ports)),
  route('GET /api/v1/model/reliability', reads(quality.ReliabilityQuery), ok(quality.readReliability, ports)),
  route('GET /api/v1/model/coverage', reads(), ok(quality.readCoverage, ports)),
  route('POST /api/v1/model/rollback', rollback, ok(versions.rollBack, ports, 'Version in force')),
];
