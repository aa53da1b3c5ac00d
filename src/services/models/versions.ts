/** The versions of a tenant's model: what each fit brought and what its guard kept, and going back to one of them. */
import { setTimeout as sleep } from 'node:timers/promises';
import Type from 'typebox';
import { Compile } from 'typebox/compile';
import { checked, orNull } from '../../contracts/checked.js';
import { parseJson } from '../../contracts/json.js';
import { readTenant, Tenant } from '../../contracts/keys.js';
import { round4 } from '../../domain/base/common.js';
import { fitModel } from '../../domain/base/params.js';
import { ApiError } from '../../errors.js';
import type { ModelChanges, StoredChange, StoredSkill } from '../../warehouse/reads/model-changes.js';
import {
  createCursors,
  cursorAfter,
  idAfter,
  listJson,
  type PageQuery,
  pageLimit,
  pageOf,
} from '../read/pages.js';
import { orUnavailable } from '../read/stored.js';
import { type FitParts, recordChanges } from './fit-models.js';

export interface VersionPorts extends Pick<FitParts, 'models' | 'history' | 'logger'> {
  readonly changes: ModelChanges;
}

/** JSON of GET /api/v1/model/versions, newest first. @throws ApiError INVALID_REQUEST, UNAVAILABLE */
export async function listVersions(
  { models, changes }: VersionPorts,
  tenant: string,
  { limit = pageLimit, cursor }: PageQuery,
): Promise<string> {
  const before = cursors.decode(cursor) ?? lastChange;
  const [inForce, kept, found] = await Promise.all([
    models.inForce(tenant),
    models.versions(tenant),
    orUnavailable(changes.changes(tenant, before, limit + 1)),
  ]);
  const describe = ({ version, isLast, ...change }: StoredChange): object => ({
    change: change.change,
    version,
    action: change.action,
    based_on: change.basedOn,
    published_at: new Date(change.publishedAt).toISOString(),
    in_force: isLast && version === inForce,
    kept: version === 0 || kept.some((one) => one.version === version),
    skills: change.skills,
    skills_published: change.skillsPublished,
    answers: change.answers,
    learners: change.learners,
    old_log_loss: rounded(change.oldLogLoss),
    new_log_loss: rounded(change.newLogLoss),
    summary: summaryOf({ version, isLast, ...change }),
  });
  const { items, next_cursor } = pageOf(found, limit, ({ change }) => cursors.encode(change));
  return listJson({ in_force: inForce }, { name: 'versions', items, describe }, { next_cursor });
}

const lastChange = 2 ** 32 - 1;
/** Of the number of the last change on the page before. */
const cursors = createCursors('change:', (text) => {
  const change = Number(text);
  return Number.isSafeInteger(change) && change > 1 && change < lastChange ? change : null;
});

const rounded = (loss: number | null): number | null => (loss === null ? null : round4(loss));

/** What changed, and why the guard let it pass or kept what was in force, in a sentence. */
function summaryOf(change: StoredChange): string {
  const { action, version, basedOn, skills, skillsPublished } = change;
  if (action === 'rollback')
    return `Version ${version} was put into force again by hand, in place of version ${basedOn}.`;
  if (skills === null) return 'Its report is not kept.';
  const parts = [
    `${skillsPublished} of ${skills} skills have new parameters`,
    `the served probability is ${servedText(change)}`,
    `the forecast of shares is ${change.accuracyReason === '' ? 'new' : `as before: ${change.accuracyReason}`}`,
  ];
  return `${parts.join('; ')}.`;
}

const noLoss = 'no held-out answer speaks against it';

function servedText({ servedReason, oldLogLoss, newLogLoss }: StoredChange): string {
  if (oldLogLoss === null || newLogLoss === null)
    return servedReason === '' ? `new: ${noLoss}` : `as before: ${servedReason}`;
  const losses = `held-out log loss ${oldLogLoss.toFixed(4)} before, ${newLogLoss.toFixed(4)} fitted`;
  return servedReason === '' ? `new: ${losses}` : `as before: ${losses}`;
}

/** JSON of GET /api/v1/model/versions/{version}, by the bytes of the skills' ids. @throws ApiError NOT_FOUND, UNAVAILABLE */
export async function readVersion(
  { changes }: VersionPorts,
  tenant: string,
  text: string,
  { limit = pageLimit, cursor }: PageQuery,
): Promise<string> {
  const after = idAfter(cursor);
  const version = /^\d{1,10}$/.test(text) ? Number(text) : lastChange;
  // Nothing is fitted in version 0, which is there always.
  const none = version === 0 ? [] : null;
  const found =
    version > lastChange ? null : await orUnavailable(changes.skills(tenant, version, after, limit + 1));
  const skills = found ?? none;
  if (skills === null) throw noVersion(text);
  const { items, next_cursor } = pageOf(skills, limit, ({ skillId }) => cursorAfter(skillId));
  return listJson({ version }, { name: 'skills', items, describe: describeSkill }, { next_cursor });
}

const describeSkill = (skill: StoredSkill): object => ({
  skill_id: skill.skillId,
  published: skill.published,
  parameters_version: skill.parametersVersion,
  p_init: round4(skill.pInit),
  p_learn: round4(skill.pLearn),
  p_guess: round4(skill.pGuess),
  p_slip: round4(skill.pSlip),
  answers: skill.answers,
  learners: skill.learners,
  old_log_loss: rounded(skill.oldLogLoss),
  new_log_loss: rounded(skill.newLogLoss),
  reason: reasonOf(skill),
});

/** A skill with too few answers for a fit of its own has the prior, which was judged over all skills. */
function reasonOf({ published, reason, oldLogLoss, newLogLoss }: StoredSkill): string {
  if (reason !== '') return reason;
  if (!published) return 'the fit had no answer on it';
  if (oldLogLoss === null || newLogLoss === null) return noLoss;
  if (newLogLoss <= oldLogLoss) return 'held-out log loss is not worse';
  if (newLogLoss - oldLogLoss <= fitModel.heldOutSlack)
    return `held-out log loss is worse by no more than ${fitModel.heldOutSlack}`;
  return 'too few answers to judge it alone: it has the prior, which is not worse over all skills';
}

export const RollbackRequest = Type.Object(
  {
    version: Type.Integer({
      minimum: 0,
      maximum: lastChange,
      description: '0: nothing fitted, the defaults',
    }),
    tenant: orNull({ ...Tenant, description: "Absent: the key's" }),
  },
  { examples: [{ version: 0 }] },
);
const rollbackCheck = Compile(RollbackRequest);

/**
 * Data of POST /api/v1/model/rollback. A version that is in force already stays so: who lost the answer may ask again.
 * @throws ApiError INVALID_REQUEST, NOT_FOUND, CONFLICT, UNAVAILABLE
 */
export async function rollBack(ports: VersionPorts, ownTenant: string, body: Buffer): Promise<object> {
  const { version, ...wanted } = checked(rollbackCheck, parseJson(body), 'rollback');
  const tenant = readTenant(wanted) ?? ownTenant;
  const outcome = await useVersion(ports, tenant, version, await ports.models.inForce(tenant));
  if (outcome === 'not-kept') throw noVersion(`${version}`);
  if (outcome === 'superseded')
    throw new ApiError('CONFLICT', 'Another version came into force meanwhile; look at the versions again');
  return { version };
}

/** How long a caller waits for ClickHouse to be told, in milliseconds: the version is in force before. */
const recordMs = 5000;

/**
 * Brings an earlier version into force again, and tells ClickHouse: where that is unavailable, the next fit does.
 * @param inForce version that is in force; where another is meanwhile, nothing changes @throws ApiError UNAVAILABLE
 */
export async function useVersion(
  { models, history, logger }: Pick<FitParts, 'models' | 'history' | 'logger'>,
  tenant: string,
  version: number,
  inForce: number,
  waitMs = recordMs,
): Promise<'used' | 'in-force' | 'not-kept' | 'superseded'> {
  if (version === inForce) return 'in-force';
  const outcome = await models.use(tenant, version, inForce);
  if (outcome === 'used') {
    logger.info({ tenant, version, before: inForce }, 'a model was put into force again by hand');
    const recorded = recordChanges({ models, history, logger }).catch((error: unknown) =>
      logger.warn({ err: error, tenant }, 'a change of the model is copied to ClickHouse later'),
    );
    await Promise.race([recorded, sleep(waitMs, null, { ref: false })]);
  }
  return outcome;
}

const noVersion = (version: string): ApiError =>
  new ApiError('NOT_FOUND', `The tenant has no version ${version} of its model`);
