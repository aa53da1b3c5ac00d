import {
  listVersions,
  RollbackRequest,
  readVersion,
  rollBack,
  type VersionPorts,
} from '../services/models/versions.js';
import {
  type QualityPorts,
  ReliabilityQuery,
  readCoverage,
  readReliability,
} from '../services/read/model-quality.js';
import { PageQuery } from '../services/read/pages.js';
import { ok } from './replies.js';
import { type Route, route } from './route.js';
import { reads, smallBody } from './rules.js';

export type ModelPorts = QualityPorts & VersionPorts;

export const modelRoutes = (ports: ModelPorts): readonly Route[] => [
  route('GET', '/api/v1/model/versions', reads(PageQuery), async ({ tenant, query }) =>
    ok(await listVersions(ports, tenant, query)),
  ),
  route('GET', '/api/v1/model/versions/:version', reads(PageQuery), async ({ tenant, query }, version) =>
    ok(await readVersion(ports, tenant, version, query)),
  ),
  route('GET', '/api/v1/model/reliability', reads(ReliabilityQuery), async ({ tenant, query }) =>
    ok(await readReliability(ports, tenant, query)),
  ),
  route('GET', '/api/v1/model/coverage', reads(), async ({ tenant }) =>
    ok(await readCoverage(ports, tenant)),
  ),
  route(
    'POST',
    '/api/v1/model/rollback',
    { scope: 'operator', body: smallBody(RollbackRequest) },
    async ({ tenant, body }) => ok(await rollBack(ports, tenant, body), 'Version in force'),
  ),
];
