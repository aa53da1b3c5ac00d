import type {
  ForecastFailure,
  ForecastOrder,
  ForecastReply,
  ForecastTask,
  WhatIfReply,
  WhatIfTask,
  WorkerSettings,
} from '../../src/contracts/tasks.js';
import type { TenantModel } from '../../src/domain/catalogue/tenant-model.js';
import { ApiError } from '../../src/errors.js';
import type { ServedModels } from '../../src/store/catalogue/catalogue-cache.js';
import { areKnownSkills, countKnownSkills } from '../../src/store/catalogue/known-skills.js';
import type { Placed } from '../../src/store/learners/learner-commands.js';
import {
  type FoundLearner,
  findLearner,
  type PackedLearner,
  readPacked,
  turnOf,
} from '../../src/store/learners/learner-reads.js';
import { noteForecasts } from '../../src/store/outbox/journal.js';
import type { RedisClient } from '../../src/store/redis/client.js';
import { partitionOf } from '../../src/store/redis/keys.js';
import { planJson, predict, resultJson, servedRow, type Tenant } from './predictions.js';

export interface ForecastParts {
  readonly redis: () => Promise<RedisClient>;
  readonly models: ServedModels;
  readonly settings: Pick<WorkerSettings, 'partitions' | 'forecastsBound'>;
  readonly now: () => number;
  /** Called with the number of served forecasts that were not noted, and why where Redis did not take them. */
  readonly onLost: (forecasts: number, error: unknown) => void;
}

interface Asked extends Placed {
  readonly order: ForecastOrder;
}

export async function predictAll(parts: ForecastParts, { orders }: ForecastTask): Promise<ForecastReply> {
  const { settings, onLost } = parts;
  const client = await parts.redis();
  const asked = askedOf(JSON.parse(orders), settings.partitions);
  const names = new Set(asked.map(({ tenant }) => tenant));
  const tenants = new Map([...names].map((name) => [name, readTenant(parts.models, client, name)]));
  const [learners] = await Promise.all([readPacked(client, asked), Promise.allSettled(tenants.values())]);
  const now = parts.now();
  const results: (string | null | ForecastFailure)[] = [];
  const rows: string[] = [];
  for (const [i, one] of asked.entries()) {
    const packed = learners[i] as PackedLearner;
    await turnOf(packed);
    const tenant = tenants.get(one.tenant) as Promise<Tenant>;
    const { result, row } = await forecastOne(one, packed, tenant, now);
    results.push(result);
    if (row !== null) rows.push(row);
  }
  // Not awaited: a forecast that is not noted is served all the same, and never scored. All rows go to the partition of
  // the first learner, for they name theirs.
  void noteForecasts(client, asked[0]?.partition ?? 0, rows, settings.forecastsBound, onLost);
  return { results };
}

const askedOf = (orders: readonly ForecastOrder[], partitions: number): Asked[] =>
  orders.flatMap((order) =>
    order.userIds.map((userId) => {
      const { tenant } = order;
      return { order, tenant, userId, partition: partitionOf(tenant, userId, partitions) };
    }),
  );

async function readTenant(models: ServedModels, client: RedisClient, name: string): Promise<Tenant> {
  const [model, knownSkills] = await Promise.all([models.get(name), countKnownSkills(client, name)]);
  return { model, knownSkills };
}

/** What is wrong with one learner's records, or with one tenant, fails no other forecast. */
async function forecastOne(
  { order, userId, tenant: name }: Asked,
  packed: PackedLearner,
  ofTenant: Promise<Tenant>,
  now: number,
): Promise<{ readonly result: string | null | ForecastFailure; readonly row: string | null }> {
  try {
    const found = packed.unpack();
    const tenant = await ofTenant;
    if (found === null) return { result: null, row: null };
    const made = predict(found, tenant, now, order);
    return { result: resultJson(made, order), row: servedRow(name, userId, made, order) };
  } catch (error) {
    return { result: failureOf(error), row: null };
  }
}

const failureOf = (error: unknown): ForecastFailure =>
  error instanceof ApiError
    ? { reason: error.message, passing: true }
    : { reason: error instanceof Error ? (error.stack ?? error.message) : `${error}`, passing: false };

export async function predictPlan(parts: ForecastParts, task: WhatIfTask): Promise<WhatIfReply> {
  const { tenant: name, userId } = task;
  const client = await parts.redis();
  const partition = partitionOf(name, userId, parts.settings.partitions);
  const [found, tenant] = await Promise.all([
    findLearner(client, { partition, tenant: name, userId }),
    readTenant(parts.models, client, name),
  ]);
  if (found === null) return { data: null };
  const unknownSkills = await unknownAmong(client, tenant.model, found, task);
  return unknownSkills.length > 0 ? { unknownSkills } : { data: planJson(found, tenant, parts.now(), task) };
}

/** Skills that neither the learner answered, nor anybody of the tenant, nor the tenant set. */
async function unknownAmong(
  client: RedisClient,
  model: TenantModel,
  { skills }: FoundLearner,
  { tenant, skillIds }: WhatIfTask,
): Promise<string[]> {
  const answered = new Set(skills.map(([skillId]) => skillId));
  const open = (skillIds ?? []).filter((skillId) => !answered.has(skillId) && !model.skills.has(skillId));
  if (open.length === 0) return [];
  const known = await areKnownSkills(client, tenant, open);
  return open.filter((_, i) => !known[i]);
}
