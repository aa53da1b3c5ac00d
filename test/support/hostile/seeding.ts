/** The learners and tenants that all these tests ask about. */
import type { TestContext } from 'node:test';
import { callerOf } from '../http/http.js';
import type { Servers } from '../servers/servers.js';
import { redisOf } from '../servers/service.js';
import { waitFor } from '../wait.js';
import {
  copyLearner,
  mostSkills,
  namingSkills,
  onNewSkills,
  overAYear,
  postAnswers,
  publishWideModel,
  skillsFile,
} from './seed.js';
import { keys, launchStand, tenantOf } from './stand.js';

/** What is tried with the attacker's key; before there were bounds all of it was taken. */
const attempted = { learner: 50_000, tenant: 200_000 } as const;

export interface Seeded {
  /** The attacker's learner with as many skills as were taken; the others are of one other tenant. */
  readonly big: string;
  /** With many answers over a year. */
  readonly busy: string;
  readonly answersOfBusy: number;
  /** With the most skills that the contract allows, and a class of such. */
  readonly full: string;
  readonly pupils: readonly string[];
}

/** Everything is in ClickHouse when it resolves. */
export async function seed(t: TestContext, servers: Servers): Promise<Seeded> {
  const tenant = tenantOf(keys.wide);
  const SKILLS_FILE = skillsFile(servers.env.DATA_DIR as string, tenant);
  const redis = await redisOf(t, servers.env.REDIS_URL as string);
  await publishWideModel(redis, tenant);
  const { port, stop } = await launchStand(t, servers, { SKILLS_FILE });
  const targets = { big: 'big', busy: 'busy', answersOfBusy: 20_000, full: 'full' };
  await postAnswers(port, keys.attacker, attempted.learner, onNewSkills(targets.big));
  await postAnswers(port, keys.attacker, attempted.tenant, namingSkills);
  await postAnswers(port, keys.wide, targets.answersOfBusy, overAYear(targets.busy, targets.answersOfBusy));
  await postAnswers(port, keys.wide, mostSkills.learner, onNewSkills(targets.full));
  await postAnswers(port, keys.wide, mostSkills.tenant, namingSkills);
  const pupils = await copyLearner(redis, tenant, targets.full);
  await waitUntilDrained(port);
  await stop();
  return { ...targets, pupils };
}

/** Draining is work, too. */
async function waitUntilDrained(port: number): Promise<void> {
  const caller = callerOf({ port }, null);
  await waitFor('the outbox to be empty', async () => {
    const { json } = await caller.get('/api/v1/health');
    return json.data?.checks.pipeline.outbox_length === 0;
  });
}
