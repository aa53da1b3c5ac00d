/** Routes of API keys and of operators. */
import { allScopes } from '../contracts/access.js';
import { KeyChange, NewKey } from '../contracts/keys.js';
import * as keys from '../services/access/manage-keys.js';
import { readAudit } from '../services/audit/audit.js';
import { listParked } from '../services/corrections/parked.js';
import { type DeploymentPorts, readDeployment } from '../services/read/deployment.js';
import { PageQuery } from '../services/read/pages.js';
import { ok, okReply } from './replies.js';
import { type Route, route } from './route.js';
import { smallBody } from './rules.js';

export interface OperatorPorts {
  readonly keys: keys.KeyPorts;
  readonly parked: Parameters<typeof listParked>[0];
  readonly lastAudit: Parameters<typeof readAudit>[0];
  readonly deployment: DeploymentPorts;
}

/** Operators need not be administrators of their tenant. */
const keepers = ['admin', 'operator'] as const;
const newKey = { scope: keepers, body: smallBody(NewKey) };
const keyChange = { scope: keepers, body: smallBody(KeyChange) };

export const operatorRoutes = (ports: OperatorPorts): readonly Route[] => [
  route('GET /api/v1/key', { scope: allScopes }, ok(keys.readOwnKey, ports.keys)),
  route('GET /api/v1/keys', { scope: keepers, query: keys.KeyQuery }, ok(keys.listKeys, ports.keys)),
  route('POST /api/v1/keys', newKey, ok(keys.createKey, ports.keys, 'Key created', 201)),
  route('PATCH /api/v1/keys/:key_id', keyChange, ok(keys.changeQuota, ports.keys, 'Quota set')),
  route('DELETE /api/v1/keys/:key_id', { scope: keepers }, ok(keys.revokeKey, ports.keys, 'Key revoked')),
  route('GET /api/v1/parked', { scope: 'operator', query: PageQuery }, ok(listParked, ports.parked)),
  route('POST /api/v1/parked/redrive', { scope: 'operator' }, async () =>
    okReply(await ports.parked.redrive(await ports.parked.streams(null)), 'Rows put back'),
  ),
  route('GET /api/v1/audits', { scope: 'operator' }, ok(readAudit, ports.lastAudit)),
  route('GET /api/v1/deployment', { scope: 'operator' }, ok(readDeployment, ports.deployment)),
];
