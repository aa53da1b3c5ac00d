/** Setting a skill in the tenant's catalogue, and taking one off. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { IfMatch, Tagged } from '../../contracts/preconditions.js';
import { readSkillBody } from '../../contracts/skills.js';
import { ApiError, unavailable } from '../../errors.js';
import type { SkillWrite, SkillWritten } from '../../store/catalogue/catalogue-store.js';
import { preconditionFailed } from '../read/goals.js';
import { findSkill, type SkillPorts, skillNotFound, taggedSkill } from '../read/read-skills.js';

export interface SkillWritePorts extends SkillPorts {
  /** Once it has resolved, every reader sees the change. @throws ApiError UNAVAILABLE */
  readonly catalogue: { put(tenant: string, write: SkillWrite, now: number): Promise<SkillWritten> };
  /** Unix milliseconds. */
  readonly now: () => number;
}

export interface SkillDeletePorts extends SkillWritePorts {
  /** Answers of the tenant on the skill that are stored. @throws where the store is unavailable */
  answers(tenant: string, skillId: string): Promise<number>;
  /** Age of the oldest answer that is not stored yet; 0 where all are. */
  oldestPendingSeconds(): Promise<number>;
}

/**
 * Data of PUT /api/v1/skills/{skill_id}: the entry is replaced as a whole.
 * @throws ApiError INVALID_REQUEST, PRECONDITION_FAILED, LIMIT_EXCEEDED, UNAVAILABLE
 */
export async function putSkill(
  ports: SkillWritePorts,
  tenant: string,
  skillId: string,
  body: unknown,
  ifMatch: IfMatch,
): Promise<Tagged<object>> {
  const setting = readSkillBody(body);
  // A skill that nobody set or answered has no tag; one that is there has always one.
  if (ifMatch !== null && (await findSkill(ports, tenant, skillId)) === null) throw preconditionFailed();
  const ifRevision = ifMatch === '*' ? null : ifMatch;
  const written = await ports.catalogue.put(tenant, { skillId, setting, ifRevision }, ports.now());
  if (written.status === 'written')
    return taggedSkill(await ports.models.current(tenant), skillId, written.entry);
  if (written.status !== 'full') throw preconditionFailed();
  throw new ApiError('LIMIT_EXCEEDED', 'The tenant knows as many skills as a tenant may have');
}

/** From so many answers on a skill stays. */
const keptAnswers = 20;

/**
 * Data of DELETE /api/v1/skills/{skill_id}: what was set is taken off, and the skill is not known any more until a learner
 * answers it for the first time. Answers stay.
 * @throws ApiError SKILL_NOT_FOUND, CONFLICT, PRECONDITION_FAILED, UNAVAILABLE
 */
export async function deleteSkill(
  ports: SkillDeletePorts,
  tenant: string,
  skillId: string,
  ifMatch: IfMatch,
): Promise<object> {
  if ((await findSkill(ports, tenant, skillId)) === null) throw skillNotFound();
  await allStored(ports);
  const answers = await ports.answers(tenant, skillId).catch((error: unknown) => {
    throw unavailable('The answers that are stored cannot be counted right now; try again later', error);
  });
  if (answers >= keptAnswers)
    throw new ApiError('CONFLICT', `The skill has ${answers} answers: with ${keptAnswers} or more it stays`);
  const write = { skillId, setting: null, ifRevision: ifMatch === '*' ? null : ifMatch };
  const { status } = await ports.catalogue.put(tenant, write, ports.now());
  if (status === 'mismatch') throw preconditionFailed();
  await ports.skills.forget(tenant, skillId);
  return { skill_id: skillId, answers };
}

export type StoringPorts = Pick<SkillDeletePorts, 'oldestPendingSeconds' | 'now'>;

/** Rows are stored in a second or three, but wait for up to ten while learners are erased on a busy machine. */
const waitMs = 15_000;
const lookMs = 200;

/**
 * Waits until the answers that were counted before are stored. The time that has gone is taken before Redis is asked: of a
 * reply that takes its time, an answer of just before would seem to have come after the call. @throws ApiError UNAVAILABLE
 */
export async function allStored({ oldestPendingSeconds, now }: StoringPorts): Promise<void> {
  const since = now();
  for (;;) {
    const waited = now() - since;
    if ((await oldestPendingSeconds()) * 1000 <= waited) return;
    if (waited > waitMs) throw unavailable('Answers wait to be stored; try again later');
    await sleep(lookMs);
  }
}
