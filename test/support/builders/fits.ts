/** Fits of made answers in servers of their own. */
import type { TestContext } from 'node:test';
import type { ClickHouseClient } from '@clickhouse/client';
import { createFitDependencies } from '../../../src/app/processes/consumers.js';
import { createLogger } from '../../../src/logger.js';
import { runFits } from '../../../src/services/models/fit-models.js';
import type { RedisClient } from '../../../src/store/redis/connection/client.js';
import { openDeployment } from '../../../src/store/redis/server/deployment.js';
import { runCommand } from '../commands/command.js';
import { type Servers, startServers } from '../servers/servers.js';
import { redisOf, type Service } from '../servers/service.js';
import type { MadeSkill } from './made-answers.js';

/** Servers that know of a deployment: else they would look as if Redis had come back empty. */
export async function startFitServers(t: TestContext): Promise<Servers> {
  const servers = await startServers(t);
  await openDeployment(await redisOf(t, servers.env.REDIS_URL ?? ''), async () => false);
  return servers;
}

/** `npm run fit`. */
export const fit = ({ env }: Servers, ...args: string[]) => runCommand('fit', env, ...args);

/** Fits a tenant of a running service on all that is stored of it. @returns what became of it */
export async function fitHere(
  { redisUrl, clickhouseUrl }: Service,
  redis: RedisClient,
  clickhouse: ClickHouseClient,
  tenant: string,
): Promise<string | undefined> {
  const endpoints = { redisUrl, clickhouseUrl, analystUrl: null, clickhouseCluster: null };
  const options = { threads: 1, servesRequests: false };
  const parts = createFitDependencies(
    { redis, clickhouse },
    endpoints,
    options,
    createLogger('fatal', 'test'),
  );
  return (await runFits(parts, { tenant }))[0]?.outcome;
}

/** Far from the defaults, so that each fit is better. */
export const bigSkills: readonly MadeSkill[] = Array.from({ length: 6 }, (_, i) => ({
  skillId: `skill-${i}`,
  learners: 400,
  parameters: {
    pInit: 0.1 + 0.12 * i,
    pLearn: 0.02 + 0.025 * i,
    pGuess: 0.38,
    pSlip: 0.14 - 0.02 * i,
    pForget: 0,
  },
}));

/** Like the big ones on average, with too few learners for a fit. */
const coldSkills: readonly MadeSkill[] = Array.from({ length: 8 }, (_, i) => ({
  skillId: `skill-cold-${i}`,
  learners: 15,
  parameters: { pInit: 0.4, pLearn: 0.1, pGuess: 0.05, pSlip: 0.15, pForget: 0 },
}));

export const skills = [...bigSkills, ...coldSkills];
