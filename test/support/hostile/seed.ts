/** Learners and tenants as large as callers can make them, made by the API where it can. */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { encodeModel } from '../../../src/contracts/models/stored-model.js';
import {
  resolveSkillModel,
  type SkillModel,
  unfittedModel,
} from '../../../src/domain/catalogue/tenant-model.js';
import { createModelStore, publishModel } from '../../../src/store/models/model-store.js';
import type { RedisClient } from '../../../src/store/redis/connection/client.js';
import { learnerKey, partitionOf } from '../../../src/store/redis/keys.js';
import { defaultPartitions } from '../../../src/store/redis/server/deployment.js';
import { type Asked, ask } from './ask.js';

/** Most skills of a learner and of a tenant that the contract allows; answers beyond them are refused. */
export const mostSkills = { learner: 2000, tenant: 50_000, set: 20_000 } as const;
const classSize = 500;

const perBatch = 1000;
const batchesTogether = 4;

interface MadeEvent {
  readonly user_id: string;
  readonly skill_id: string;
  readonly is_correct: boolean;
  readonly event_id?: string;
  readonly occurred_at?: string;
}

/** Posts `count` answers in batches. @returns how many batches had each status */
export async function postAnswers(
  port: number,
  key: string,
  count: number,
  eventOf: (i: number) => MadeEvent,
): Promise<Record<number, number>> {
  const statuses: Record<number, number> = {};
  let from = 0;
  const post = async (): Promise<void> => {
    while (from < count) {
      const first = from;
      from += perBatch;
      const events = Array.from({ length: Math.min(perBatch, count - first) }, (_, i) => eventOf(first + i));
      const { status } = await postBatch(port, key, { events });
      statuses[status] = (statuses[status] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: batchesTogether }, post));
  return statuses;
}

const postBatch = (port: number, key: string, body: object): Promise<Asked> =>
  ask(port, { method: 'POST', path: '/api/v1/track-answers', key, body: JSON.stringify(body) });

const right = (i: number): boolean => i % 3 > 0;
export const skillName = (i: number): string => `skill-${`${i}`.padStart(6, '0')}`;

/** Answers of one learner, each on a skill of its own. */
export const onNewSkills = (userId: string, from = 0) => {
  return (i: number): MadeEvent => ({ user_id: userId, skill_id: skillName(from + i), is_correct: right(i) });
};

/** Answers of many learners, each on as many new skills as one may have. */
export const namingSkills = (i: number): MadeEvent => ({
  user_id: `names-${Math.floor(i / mostSkills.learner)}`,
  skill_id: skillName(i),
  is_correct: right(i),
});

const dayMs = 86_400_000;

/** Answers of one learner over a year. @param last number of answers */
export const overAYear = (userId: string, last: number) => {
  const now = Date.now();
  return (i: number): MadeEvent => ({
    user_id: userId,
    skill_id: skillName(i % 50),
    is_correct: right(i),
    event_id: `e-${i}`,
    occurred_at: new Date(now - Math.floor(((last - i) / last) * 364 * dayMs)).toISOString(),
  });
};

/** @returns a SKILLS_FILE that sets as many skills of a tenant as may be set */
export function skillsFile(folder: string, tenant: string): string {
  const file = join(folder, 'skills.csv');
  const rows = Array.from(
    { length: mostSkills.set },
    (_, i) => `${skillName(i)},${tenant},Skill number ${i},${i % 2 === 0 ? 'math' : 'rw'}`,
  );
  writeFileSync(file, `skill_id,tenant,name,section\n${rows.join('\n')}\n`);
  return file;
}

/** Brings a model into force that has fitted as many skills as are set. */
export async function publishWideModel(redis: RedisClient, tenant: string): Promise<void> {
  const version = await createModelStore(redis).reserveVersion(tenant);
  const fittedAt = new Date(0).toISOString();
  const skill: SkillModel = {
    ...resolveSkillModel(unfittedModel, 'any'),
    source: 'fitted',
    version,
    fittedAt,
  };
  const skills = new Map(Array.from({ length: mostSkills.set }, (_, i) => [skillName(i), skill]));
  const model = encodeModel({ ...unfittedModel, version, fittedAt, skills });
  const texts = { model, report: '{}', items: null, publishedAt: Date.now() };
  await publishModel(redis, { tenant, version, basedOn: 0, ...texts });
}

const keyOf = (tenant: string, userId: string): string =>
  learnerKey(partitionOf(tenant, userId, defaultPartitions), tenant, userId);

/** Gives as many learners as a class may have the records of one. @returns their ids */
export async function copyLearner(redis: RedisClient, tenant: string, userId: string): Promise<string[]> {
  const dump = await redis.dumpBuffer(keyOf(tenant, userId));
  if (dump === null) throw new Error(`${userId} is not there`);
  const ids = Array.from({ length: classSize }, (_, i) => `pupil-${i}`);
  for (const id of ids) await redis.restore(keyOf(tenant, id), 0, dump, 'REPLACE');
  return ids;
}

/** 128 characters, the most that an id has. */
export const longId = (): string => randomBytes(64).toString('hex');
