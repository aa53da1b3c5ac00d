/** Forecasts of learners as they are stored now. */
import type {
  ForecastOrder,
  ForecastProblem,
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
import {
  type FoundLearner,
  findLearner,
  type PackedLearner,
  readPacked,
  turnOf,
} from '../../src/store/learners/learner-reads.js';
import type { Placed } from '../../src/store/learners/learner-records.js';
import { noteForecasts } from '../../src/store/outbox/journal.js';
import type { RedisClient } from '../../src/store/redis/client.js';
import { partitionOf } from '../../src/store/redis/keys.js';
import { predict, servedRow, type Tenant, tellPlan, toldResult } from './predictions.js';

export interface ForecastParts {
  readonly redis: () => Promise<RedisClient>;
  readonly models: ServedModels;
  readonly settings: Pick<WorkerSettings, 'partitions' | 'forecastsBound'>;
  /** Unix milliseconds. */
  readonly now: () => number;
  /** Hears how many served forecasts were not noted, and why where Redis did not take them. */
  readonly onLost: (forecasts: number, error: unknown) => void;
}

/** One learner of an order. */
interface Asked extends Placed {
  readonly order: ForecastOrder;
}

export function createForecasts(parts: ForecastParts) {
  return {
    predict: (task: ForecastTask): Promise<ForecastReply> => predictAll(parts, task),
    whatIf: (task: WhatIfTask): Promise<WhatIfReply> => predictPlan(parts, task),
  };
}

async function predictAll(parts: ForecastParts, { orders }: ForecastTask): Promise<ForecastReply> {
  const { settings, onLost } = parts;
  const client = await parts.redis();
  const asked = askedOf(JSON.parse(orders), settings.partitions);
  const [learners, tenants] = await Promise.all([
    readPacked(client, asked),
    readTenants(parts, client, asked),
  ]);
  const now = parts.now();
  const served: Served[] = [];
  for (const [i, one] of asked.entries()) {
    const packed = learners[i] as PackedLearner;
    await turnOf(packed);
    served.push(serve(one, packed, tenants, now));
  }
  const rows = served.flatMap(({ row }) => row ?? []);
  // Nobody waits for it: a forecast that is not noted is not scored one day, and told all the same. Learners who are
  // asked for together are noted as one, with the first of them: rows say whose they are.
  void noteForecasts(client, asked[0]?.partition ?? 0, rows, settings.forecastsBound, onLost);
  return {
    data: served.map(({ told }) => told),
    problems: served.flatMap(({ error }, place) => (error === null ? [] : problemOf(error, place))),
  };
}

const askedOf = (orders: readonly ForecastOrder[], partitions: number): Asked[] =>
  orders.flatMap((order) =>
    order.userIds.map((userId) => {
      const { tenant } = order;
      return { order, tenant, userId, partition: partitionOf(tenant, userId, partitions) };
    }),
  );

/** Gives a tenant of the task. @throws what went wrong when it was read */
type Tenants = (name: string) => Tenant;

async function readTenants(
  { models }: ForecastParts,
  client: RedisClient,
  asked: readonly Asked[],
): Promise<Tenants> {
  const names = [...new Set(asked.map(({ tenant }) => tenant))];
  const read = await Promise.allSettled(names.map((name) => readTenant(models, client, name)));
  return (name) => {
    const tenant = read[names.indexOf(name)] as PromiseSettledResult<Tenant>;
    if (tenant.status === 'rejected') throw tenant.reason;
    return tenant.value;
  };
}

async function readTenant(models: ServedModels, client: RedisClient, name: string): Promise<Tenant> {
  const [model, knownSkills] = await Promise.all([models.get(name), countKnownSkills(client, name)]);
  return { model, knownSkills };
}

/** What became of one learner; all null for one without answers. */
interface Served {
  readonly told: string | null;
  readonly row: string | null;
  readonly error: unknown;
}

const nobody: Served = { told: null, row: null, error: null };

/** What is wrong with one learner's records, or with one tenant, is no other's problem. */
function serve(asked: Asked, packed: PackedLearner, tenants: Tenants, now: number): Served {
  try {
    return forecastOne(asked, packed.unpack(), tenants(asked.tenant), now);
  } catch (error) {
    return { ...nobody, error };
  }
}

function forecastOne(
  { order, userId }: Asked,
  found: FoundLearner | null,
  tenant: Tenant,
  now: number,
): Served {
  if (found === null) return nobody;
  const made = predict(found, tenant, now, order);
  return {
    told: toldResult(made, tenant.model, order),
    row: servedRow(order.tenant, userId, made, tenant.model, order),
    error: null,
  };
}

const problemOf = (error: unknown, place: number): ForecastProblem =>
  error instanceof ApiError
    ? { place, reason: error.message, passing: true }
    : { place, reason: error instanceof Error ? (error.stack ?? error.message) : `${error}`, passing: false };

async function predictPlan(parts: ForecastParts, task: WhatIfTask): Promise<WhatIfReply> {
  const { tenant: name, userId } = task;
  const client = await parts.redis();
  const partition = partitionOf(name, userId, parts.settings.partitions);
  const [found, tenant] = await Promise.all([
    findLearner(client, { partition, tenant: name, userId }),
    readTenant(parts.models, client, name),
  ]);
  if (found === null) return { data: null };
  const unknownSkills = await unknownAmong(client, tenant.model, found, task);
  return unknownSkills.length > 0 ? { unknownSkills } : { data: tellPlan(found, tenant, parts.now(), task) };
}

/** Those that neither the learner answered, nor anybody of the tenant, nor the tenant set. */
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
