/** What answers are counted with beside their learners' own states: the tenants' models, and seldom all skills. */
import type { TenantModel } from '../src/domain/tenant-model.js';
import { ApiError } from '../src/errors.js';
import type { RedisClient } from '../src/store/client.js';
import { countKnownSkills } from '../src/store/known-skills.js';
import { readPacked } from '../src/store/learner-reads.js';
import type { ModelCache } from '../src/store/model-cache.js';
import type { ItemTable } from './item-table.js';
import type { AllSkills, LearnerWork } from './plan.js';

/** Where models and what is known of items come from. */
export interface ModelSources {
  readonly models: ModelCache;
  readonly items: ItemTable;
}

export const distinct = (texts: readonly string[]): string[] => [...new Set(texts)];

/** The models of all tenants in the batch; one tenant's that cannot be used must not refuse the answers of others. */
export async function loadModels(
  sources: ModelSources,
  open: readonly LearnerWork[],
): Promise<Map<string, TenantModel | ApiError>> {
  const byTenant = new Map<string, TenantModel | ApiError>();
  const tenants = distinct(open.map(({ tenant }) => tenant));
  await Promise.all(
    tenants.map(async (tenant) => {
      const works = open.filter((work) => work.tenant === tenant);
      byTenant.set(tenant, await loadModel(sources, tenant, works).catch(asRefusal));
    }),
  );
  return byTenant;
}

function asRefusal(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  throw error;
}

/** The tenant's model, once everything is known of the items too. */
async function loadModel(
  { models, items }: ModelSources,
  tenant: string,
  works: readonly LearnerWork[],
): Promise<TenantModel> {
  const model = await models.get(tenant);
  const itemIds = new Set<string>();
  for (const { events } of works)
    for (const { event } of events) if (event.itemId !== null) itemIds.add(event.itemId);
  if (itemIds.size > 0) await items.load(tenant, model.version, [...itemIds]);
  return model;
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
