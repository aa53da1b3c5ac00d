/** What answers are counted with beside their learners' own states: the tenants' models, and seldom all skills. */
import type { TenantModel } from '../../src/domain/catalogue/tenant-model.js';
import { ApiError } from '../../src/errors.js';
import type { ServedModels } from '../../src/store/catalogue/catalogue-cache.js';
import { countKnownSkills } from '../../src/store/catalogue/known-skills.js';
import { readPacked } from '../../src/store/learners/learner-reads.js';
import type { LoadedBatch } from '../../src/store/learners/learner-records.js';
import type { RedisClient } from '../../src/store/redis/client.js';
import type { ItemTable } from './item-table.js';
import type { AllSkills, LearnerWork } from './plan.js';

/** Where models and what is known of items come from. */
export interface ModelSources {
  readonly models: ServedModels;
  readonly items: ItemTable;
}

export const distinct = (texts: readonly string[]): string[] => [...new Set(texts)];

/**
 * The models of all tenants in the batch; one tenant's that cannot be used must not refuse the answers of others.
 *
 * @param marks of the tenants' catalogues, once they were read with the learners; null where they are not
 */
export async function loadModels(
  sources: ModelSources,
  open: readonly LearnerWork[],
  marks: Promise<LoadedBatch['marks']>,
): Promise<Map<string, TenantModel | ApiError>> {
  const byTenant = new Map<string, TenantModel | ApiError>();
  const tenants = distinct(open.map(({ tenant }) => tenant));
  await Promise.all(
    tenants.map(async (tenant) => {
      const works = open.filter((work) => work.tenant === tenant);
      const mark = marks.then((all) => all?.get(tenant));
      byTenant.set(tenant, await loadModel(sources, tenant, works, mark).catch(asRefusal));
    }),
  );
  return byTenant;
}

function asRefusal(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  throw error;
}

/** The tenant's model, once everything is known of the items too: these are loaded while the mark is. */
async function loadModel(
  { models, items }: ModelSources,
  tenant: string,
  works: readonly LearnerWork[],
  mark: Promise<string | undefined>,
): Promise<TenantModel> {
  const itemIds = itemIdsOf(works);
  const load = async (version: number): Promise<number> => {
    if (itemIds.length > 0) await items.load(tenant, version, itemIds);
    return version;
  };
  const [model, loaded] = await Promise.all([
    mark.then((known) => models.get(tenant, known)),
    models.version(tenant).then(load),
  ]);
  if (model.version !== loaded) await load(model.version);
  return model;
}

function itemIdsOf(works: readonly LearnerWork[]): string[] {
  const itemIds = new Set<string>();
  for (const { events } of works)
    for (const { event } of events) if (event.itemId !== null) itemIds.add(event.itemId);
  return [...itemIds];
}

/** Of the learners who need them, seldom many: one read for all of them, one count for each tenant. */
export async function allSkills(
  client: RedisClient,
  works: readonly LearnerWork[],
): Promise<ReadonlyMap<LearnerWork, AllSkills>> {
  if (works.length === 0) return new Map();
  const tenants = distinct(works.map(({ tenant }) => tenant));
  const [packed, counts] = await Promise.all([
    readPacked(client, works),
    Promise.all(tenants.map((tenant) => countKnownSkills(client, tenant))),
  ]);
  return new Map(
    works.map((work, i) => {
      const knownSkills = counts[tenants.indexOf(work.tenant)] as number;
      return [work, { skills: new Map(packed[i]?.unpack()?.skills), knownSkills }];
    }),
  );
}
