/** Fits of made answers in servers of their own. */
import type { TestContext } from 'node:test';
import type { ClickHouseClient } from '@clickhouse/client';
import { openDeployment } from '../../src/store/deployment.js';
import { runCommand } from './command.js';
import { freshDatabase, startTestRedis } from './embedded.js';
import type { MadeSkill } from './made-answers.js';
import { redisOf } from './service.js';
import { tempDir } from './temp.js';
import { testDatabase } from './warehouse.js';

export interface Servers {
  readonly env: Record<string, string>;
  readonly clickhouse: ClickHouseClient;
}

/** On a Redis and a database of the test's own. */
export async function startServers(t: TestContext): Promise<Servers> {
  const redisUrl = await startTestRedis(t);
  const { clickhouseUrl } = await freshDatabase();
  const { url, client } = await testDatabase(t, clickhouseUrl);
  // Else it would look as if it had come back empty.
  await openDeployment(await redisOf(t, redisUrl), async () => false);
  const env = { REDIS_URL: redisUrl, CLICKHOUSE_URL: url, DATA_DIR: await tempDir(t) };
  return { env, clickhouse: client };
}

/** `npm run fit`. */
export const fit = ({ env }: Servers, ...args: string[]) => runCommand('fit', env, ...args);

/** Far from the defaults, so that each fit is better. */
export const bigSkills: readonly MadeSkill[] = Array.from({ length: 6 }, (_, i) => ({
  skillId: `skill-${i}`,
  learners: 400,
  parameters: { pInit: 0.1 + 0.12 * i, pLearn: 0.02 + 0.03 * i, pGuess: 0.05, pSlip: 0.2 - 0.02 * i },
}));

/** Like the big ones on average, with too few learners for a fit. */
const coldSkills: readonly MadeSkill[] = Array.from({ length: 8 }, (_, i) => ({
  skillId: `skill-cold-${i}`,
  learners: 15,
  parameters: { pInit: 0.4, pLearn: 0.1, pGuess: 0.05, pSlip: 0.15 },
}));

export const skills = [...bigSkills, ...coldSkills];
