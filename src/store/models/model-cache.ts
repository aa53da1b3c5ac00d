/** The models in force as a process or thread serves with them: loaded once, then watched. */
import type { TenantModel } from '../../domain/catalogue/tenant-model.js';
import { ApiError, unavailable } from '../../errors.js';
import { type RedisClient, whileRedisServes } from '../redis/client.js';
import { modelsKey } from '../redis/keys.js';
import { keepRecent, reportOnce } from '../redis/recent.js';
import { readModel, versionInForce } from './model-store.js';

export type ModelCache = ReturnType<typeof createModelCache>;

interface ModelCacheOptions {
  readonly redis: () => Promise<RedisClient>;
  /** Called once for each version that cannot be read; the tenant keeps the one before. */
  readonly onUnreadable: (error: unknown, tenant: string, version: number) => void;
  readonly pollMs?: number;
  readonly maxTenants?: number;
}

interface Entry {
  readonly model: Promise<TenantModel>;
  /** Version that was looked at last, readable or not. */
  seen: number;
}

/** Watches the tenants in use with one command every `pollMs`; while Redis is unavailable, all keep what they have. */
export function createModelCache(options: ModelCacheOptions) {
  const { redis, pollMs = 2000, maxTenants = 1000 } = options;
  const report = reportOnce(options.onUnreadable, maxTenants);
  /** In order of use, the longest unused first. */
  const entries = new Map<string, Entry>();
  let polling = false;

  /**
   * The tenant's model. The first use loads it; later ones get what is there, at most about two seconds old.
   *
   * @throws ApiError UNAVAILABLE where it cannot be loaded, or is of a newer version of the service
   */
  function get(tenant: string): Promise<TenantModel> {
    const entry = entries.get(tenant) ?? load(tenant);
    keepRecent(entries, tenant, entry, maxTenants);
    return entry.model;
  }

  function load(tenant: string): Entry {
    const model = loadFirst(tenant);
    const entry: Entry = { model, seen: -1 };
    model.then(
      ({ version }) => {
        entry.seen = Math.max(entry.seen, version);
      },
      // Those who wait get the error; the next use tries again.
      () => entries.get(tenant) === entry && entries.delete(tenant),
    );
    return entry;
  }

  async function loadFirst(tenant: string): Promise<TenantModel> {
    const client = await redis();
    const version = await versionInForce(client, tenant);
    try {
      return await readModel(client, tenant, version);
    } catch (error) {
      if (error instanceof ApiError) throw error;
      report(error, tenant, version);
      throw unavailable('The model of this tenant cannot be used right now', error);
    }
  }

  async function poll(): Promise<void> {
    if (polling || entries.size === 0) return;
    polling = true;
    try {
      const client = await redis();
      const tenants = [...entries.keys()];
      const versions = await whileRedisServes(client.hmget(modelsKey, ...tenants));
      await Promise.all(tenants.map((tenant, i) => renew(client, tenant, Number(versions[i] ?? 0))));
    } catch (error) {
      // While Redis is unavailable the models stay as they are; requests that need Redis report it.
      if (!(error instanceof ApiError)) throw error;
    } finally {
      polling = false;
    }
  }

  async function renew(client: RedisClient, tenant: string, version: number): Promise<void> {
    const entry = entries.get(tenant);
    if (entry === undefined || entry.seen === -1 || entry.seen === version) return;
    const model = await readModel(client, tenant, version).catch((error: unknown) => {
      if (error instanceof ApiError) throw error;
      report(error, tenant, version);
      return null;
    });
    entry.seen = version;
    if (model !== null && entries.get(tenant) === entry)
      entries.set(tenant, { model: Promise.resolve(model), seen: version });
  }

  const timer = setInterval(poll, pollMs);
  timer.unref();
  return { get, close: (): void => clearInterval(timer) };
}
