import type { ClickHouseClient } from '@clickhouse/client';
import { singleFlight } from '../../concurrency.js';
import { type Closers, StartError } from '../../lifecycle.js';
import type { Logger } from '../../logger.js';
import { mapRedisErrors, type RedisClient } from '../../store/redis/connection/client.js';
import {
  type Deployment,
  defaultPartitions,
  findVersionMismatch,
  formatUnusableReason,
  openDeployment,
} from '../../store/redis/server/deployment.js';
import { hasStoredState } from '../../warehouse/reads/stored-state.js';

const checkIntervalMs = 1000;

const stateUnknownReason = 'The connection to Redis was lost; the state is not verified yet';

/**
 * Redis may come back empty at any time: checks every second and at each new connection. Resolves after the
 * first check.
 */
export async function watchDeployment(
  redis: RedisClient,
  clickhouse: ClickHouseClient,
  logger: Logger,
  closers: Closers,
) {
  let deployment: Deployment | null = null;
  /** Lost connections, now and when the accepted state was requested. */
  let disconnects = 0;
  let disconnectsAtCheck = 0;
  const listeners: (() => void)[] = [];

  function acceptDeployment(found: Deployment, disconnectsAtRequest: number): void {
    if (disconnectsAtRequest < disconnectsAtCheck) return;
    if (found.state !== 'ready' && deployment?.state !== found.state)
      logger.error(`${formatUnusableReason(found)}; answers are rejected with 503 until then`);
    const before = deployment;
    deployment = found;
    disconnectsAtCheck = disconnectsAtRequest;
    if (found.state !== 'ready') return;
    if (before?.state !== 'ready' || before.id !== found.id) for (const listener of listeners) listener();
  }

  async function checkDeployment(): Promise<void> {
    const disconnectsAtRequest = disconnects;
    try {
      acceptDeployment(await openDeployment(redis, () => hasStoredState(clickhouse)), disconnectsAtRequest);
    } catch (error) {
      logger.debug({ err: error }, 'Redis or ClickHouse is unavailable; the deployment is checked later');
    }
  }

  redis.on('close', () => {
    disconnects += 1;
  });
  // Not single flight: a running check may use the previous connection.
  redis.on('ready', checkDeployment);
  await checkDeployment();
  const timer = setInterval(singleFlight(checkDeployment), checkIntervalMs);
  closers.add('deployment watch', () => clearInterval(timer));
  const first = deployment as Deployment | null;
  // The process stays blocked until Redis confirms the number.
  const partitions = first?.state === 'ready' ? first.partitions : defaultPartitions;
  return {
    partitions,
    blockReason: () =>
      disconnects === disconnectsAtCheck ? findBlockReason(deployment, partitions) : stateUnknownReason,
    /** Also called if Redis belongs to another deployment. */
    onUsable: (listener: () => void): void => void listeners.push(listener),
  };
}

function findBlockReason(deployment: Deployment | null, partitions: number): string | null {
  if (deployment === null) return 'Redis is empty; waiting for ClickHouse to check for existing data';
  if (deployment.state !== 'ready') return formatUnusableReason(deployment);
  // A process that starts with an empty Redis assumes the default number.
  if (deployment.partitions === partitions) return null;
  return 'Redis was rebuilt with another number of partitions; restart this process';
}

/**
 * Call before creating the schema, which the previous version would reject.
 * @throws StartError, ApiError UNAVAILABLE
 */
export async function rejectOtherVersion(redis: RedisClient): Promise<void> {
  const other = await mapRedisErrors(findVersionMismatch(redis));
  if (other !== null) throw new StartError(formatUnusableReason(other));
}
