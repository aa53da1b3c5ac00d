import { setTimeout as sleep } from 'node:timers/promises';
import Type from 'typebox';
import { Compile } from 'typebox/compile';
import type { Call } from '../../contracts/access/call.js';
import { Tenant } from '../../contracts/access/keys.js';
import type { VersionSkill } from '../../contracts/responses/models.js';
import { parseJson } from '../../contracts/schema/json.js';
import { optionalNullable, validate } from '../../contracts/schema/validate.js';
import { roundFields } from '../../domain/base/common.js';
import { fitConstants } from '../../domain/base/fit-constants.js';
import { partLabels } from '../../domain/fit/prediction/model-parts.js';
import { ApiError } from '../../errors.js';
import type { ModelChanges, StoredChange } from '../../warehouse/reads/model-changes.js';
import * as pages from '../paging/pages.js';
import { type ModelDependencies, recordModelChanges } from './fit-models.js';

export interface VersionPorts extends ModelDependencies {
  readonly changes: ModelChanges;
}

export async function listVersions(
  { models, changes }: VersionPorts,
  { tenant, query: { limit = pages.defaultPageLimit, cursor } }: Call<pages.PageQuery>,
): Promise<string> {
  const before = cursors.decode(cursor) ?? maxUint32;
  const [activeVersion, retainedVersions, found] = await Promise.all([
    models.fetchActiveVersion(tenant),
    models.listVersions(tenant),
    changes.listChanges(tenant, before, limit + 1),
  ]);
  const describe = (stored: StoredChange): object => {
    const { is_last, served_reason: _, accuracy_reason: __, parts: ___, ...change } = stored;
    const { version } = change;
    return {
      ...roundFields(change),
      in_force: is_last && version === activeVersion,
      kept: version === 0 || retainedVersions.some((one) => one.version === version),
      summary: formatSummary(stored),
    };
  };
  const page = pages.buildPage(found, limit, ({ change }) => cursors.encode(change));
  return pages.encodeList({ in_force: activeVersion }, 'versions', page, describe);
}

const maxUint32 = 2 ** 32 - 1;
const cursors = pages.createNumberCursors('change:', maxUint32);

function formatSummary(change: StoredChange): string {
  const { action, version, based_on, skills, skills_published } = change;
  if (action === 'rollback')
    return `A rollback activated version ${version} in place of version ${based_on}.`;
  if (skills === null) return 'The fit report is no longer stored.';
  const parts = [
    `${skills_published} of ${skills} skills have new parameters`,
    `probability model: ${formatServedChange(change)}`,
    `accuracy forecast: ${change.accuracy_reason === '' ? 'new' : `unchanged, ${change.accuracy_reason}`}`,
  ];
  return `${parts.join('; ')}.`;
}

const noHeldOutText = 'no held-out answers to compare';

function formatServedChange({ served_reason, old_log_loss, new_log_loss, parts }: StoredChange): string {
  const names = Object.entries(partLabels).flatMap(([part, text]) => (parts.includes(part) ? [text] : []));
  const partsText = names.length === 0 ? '' : `, with ${names.join(', ')}`;
  if (old_log_loss === null || new_log_loss === null)
    return served_reason === '' ? `new, ${noHeldOutText}${partsText}` : `unchanged, ${served_reason}`;
  const losses = `held-out log loss ${old_log_loss.toFixed(4)} before, ${new_log_loss.toFixed(4)} fitted`;
  return served_reason === '' ? `new, ${losses}${partsText}` : `unchanged, ${losses}`;
}

export async function readVersion(
  { changes }: VersionPorts,
  { tenant, query: { limit = pages.defaultPageLimit, cursor } }: Call<pages.PageQuery>,
  text: string,
): Promise<string> {
  const after = pages.decodeIdCursor(cursor);
  const version = /^\d{1,10}$/.test(text) ? Number(text) : maxUint32;
  // Version 0 always exists and has no fitted skills.
  const none = version === 0 ? [] : null;
  const found = version > maxUint32 ? null : await changes.listSkills(tenant, version, after, limit + 1);
  const skills = found ?? none;
  if (skills === null) throw versionNotFound(text);
  const page = pages.buildPage(skills, limit, ({ skill_id }) => pages.encodeIdCursor(skill_id));
  return pages.encodeList({ version }, 'skills', page, (skill) =>
    roundFields({ ...skill, reason: formatReason(skill) }),
  );
}

/** A skill with too few answers gets the prior, which was validated over all skills. */
function formatReason({ published, reason, old_log_loss, new_log_loss }: VersionSkill): string {
  if (reason !== '') return reason;
  if (!published) return 'no answers on this skill in the fit';
  if (old_log_loss === null || new_log_loss === null) return noHeldOutText;
  if (new_log_loss <= old_log_loss) return 'held-out log loss is not higher';
  if (new_log_loss - old_log_loss <= fitConstants.heldOutSlack)
    return `held-out log loss is higher by at most ${fitConstants.heldOutSlack}`;
  return 'too few answers to evaluate the skill: the prior is used, which is not worse over all skills';
}

export const RollbackRequest = Type.Object(
  {
    version: Type.Integer({
      minimum: 0,
      maximum: maxUint32,
      description: 'Version to activate; 0 for the default parameters without a fit.',
    }),
    tenant: optionalNullable({ ...Tenant, description: 'Tenant; the tenant of the key by default.' }),
  },
  { examples: [{ version: 0 }] },
);
const rollbackValidator = Compile(RollbackRequest);

/** Succeeds if the version is already active, so callers may retry. */
export async function rollBack(ports: VersionPorts, { tenant: own, body }: Call): Promise<object> {
  const { version, tenant: named } = validate(rollbackValidator, parseJson(body), 'rollback');
  const tenant = named ?? own;
  const outcome = await activateVersion(
    ports,
    tenant,
    version,
    await ports.models.fetchActiveVersion(tenant),
  );
  if (outcome === 'not-kept') throw versionNotFound(`${version}`);
  if (outcome === 'superseded')
    throw new ApiError(
      'CONFLICT',
      'Another version was activated at the same time. List the versions again, then retry.',
    );
  return { version };
}

/** Maximum wait for ClickHouse. If it is unavailable, the next fit records the rollback. */
const recordTimeoutMs = 5000;

/** Has no effect if another version than `activeVersion` is active. @throws ApiError UNAVAILABLE */
export async function activateVersion(
  dependencies: ModelDependencies,
  tenant: string,
  version: number,
  activeVersion: number,
  waitMs = recordTimeoutMs,
): Promise<'used' | 'in-force' | 'not-kept' | 'superseded'> {
  if (version === activeVersion) return 'in-force';
  const { models, logger } = dependencies;
  const outcome = await models.activate(tenant, version, activeVersion);
  if (outcome === 'used') {
    logger.info({ tenant, version, before: activeVersion }, 'rollback activated a model version');
    const recorded = recordModelChanges(dependencies).catch((error: unknown) =>
      logger.warn(
        { err: error, tenant },
        'cannot copy a model change to ClickHouse now; the next fit copies it',
      ),
    );
    await Promise.race([recorded, sleep(waitMs, null, { ref: false })]);
  }
  return outcome;
}

const versionNotFound = (version: string): ApiError =>
  new ApiError('NOT_FOUND', `The tenant has no stored model version ${version}.`);
