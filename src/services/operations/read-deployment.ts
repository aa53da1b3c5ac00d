import type { DeploymentRecord } from '../../contracts/access/access.js';
import type { Call } from '../../contracts/access/call.js';
import { unavailable } from '../../errors.js';
import { version } from '../../version.js';

export interface DeploymentPorts {
  /** Null if Redis lost its data. */
  readonly readFacts: () => Promise<DeploymentRecord | null>;
  readonly readRedisVersion: () => Promise<string>;
  readonly readClickhouseVersions: (
    tenant: string,
  ) => Promise<{ readonly version: string; readonly schema: number }>;
}

export async function readDeployment(ports: DeploymentPorts, { tenant }: Call): Promise<object> {
  const [facts, redisVersion, clickhouse] = await Promise.all([
    ports.readFacts(),
    ports.readRedisVersion(),
    ports.readClickhouseVersions(tenant).catch(() => null),
  ]);
  if (facts === null) throw unavailable('Learner state was lost and is not rebuilt yet; retry later.');
  return {
    version,
    deployment_id: facts.deploymentId,
    created_at: facts.createdAt,
    partitions: facts.partitions,
    schema_version: clickhouse?.schema ?? null,
    node_version: process.versions.node,
    redis_version: redisVersion,
    clickhouse_version: clickhouse?.version ?? null,
  };
}
