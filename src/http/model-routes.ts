import {
  type QualityPorts,
  ReliabilityQuery,
  readCoverage,
  readReliability,
} from '../services/read/model-quality.js';
import { ok } from './replies.js';
import { type Route, route } from './route.js';
import { reads } from './rules.js';

export type ModelPorts = QualityPorts;

export const modelRoutes = (ports: ModelPorts): readonly Route[] => [
  route('GET', '/api/v1/model/reliability', reads(ReliabilityQuery), async ({ tenant, query }) =>
    ok(await readReliability(ports, tenant, query)),
  ),
  route('GET', '/api/v1/model/coverage', reads(), async ({ tenant }) =>
    ok(await readCoverage(ports, tenant)),
  ),
];
