/** Fits of made-up answers. */
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

/** Without a deployment, Redis would be taken for one that lost its data. */
export async function startFitServers(t: TestContext): Promise<Servers> {
  const servers = await startServers(t);
  await openDeployment(await redisOf(t, servers.env.REDIS_URL ?? ''), async () => false);
  return servers;
}

export const fit = ({ env }: Servers, ...args: string[]) => runCommand('fit', env, ...args);

/** Fits a tenant of a running service on all its stored answers. */
export async function fitHere(
  { redisUrl, clickhouseUrl }: Service,
  redis: RedisClient,
  clickhouse: ClickHouseClient,
  tenant: string,
): Promise<string | undefined> {
  const endpoints = { redisUrl, clickhouseUrl, analystUrl: null, clickhouseCluster: null };
  const options = { threads: 1, servesRequests: false };
  const logger = createLogger('fatal', 'test');
  const dependencies = createFitDependencies({ redis, clickhouse }, endpoints, options, logger);
  return (await runFits(dependencies, { tenant }))[0]?.outcome;
}

const makeSkill = (skillId: string, learners: number, parameters: object): MadeSkill => ({
  skillId,
  learners,
  parameters: { pInit: 0.4, pLearn: 0.1, pGuess: 0.05, pSlip: 0.15, pForget: 0, ...parameters },
});

/** Far from the defaults, so that each fit is better. */
export const bigSkills: readonly MadeSkill[] = Array.from({ length: 6 }, (_, i) =>
  makeSkill(`skill-${i}`, 400, {
    ...{ pInit: 0.1 + 0.12 * i, pLearn: 0.02 + 0.025 * i, pGuess: 0.38, pSlip: 0.14 - 0.02 * i },
  }),
);

/** Too few learners for a fit. Their parameters are about the average of the big skills. */
const smallSkills = Array.from({ length: 8 }, (_, i) => makeSkill(`skill-small-${i}`, 15, {}));

export const skills = [...bigSkills, ...smallSkills];
