import { shareUntilReady, singleFlight, singleFlights } from '../../concurrency.js';
import { emptyCatalogue } from '../../domain/catalogue/catalogue.js';
import type { TenantModel } from '../../domain/catalogue/tenant-model.js';
import { ApiError, unavailable } from '../../errors.js';
import { readModel, versionInForce } from '../models/model-store.js';
import { isCluster, type RedisClient, whileRedisServes } from '../redis/client.js';
import { modelsKey } from '../redis/keys.js';
import { keepRecent, reportOnce } from '../redis/recent.js';
import { catalogueMark, type MarkedCatalogue, readCatalogue } from './catalogue-store.js';

export type ServedModels = ReturnType<typeof serveModels>;

type Redis = () => Promise<RedisClient>;
interface ErrorLog {
  error(facts: Readonly<Record<string, unknown>>, message: string): void;
}

interface Entry {
  fitted: Promise<TenantModel>;
  /** Last version read, even if unreadable; -1 during the first load. */
  seen: number;
  served: {
    readonly fitted: TenantModel;
    readonly marked: MarkedCatalogue;
    readonly model: TenantModel;
  } | null;
}

const unset: MarkedCatalogue = { mark: '', catalogue: emptyCatalogue };

/**
 * A model may be out of date by `pollMs`. Each call reads the catalogue's mark, and the catalogue if the mark
 * changed. Without changes, the same object is returned.
 */
export function serveModels(redis: Redis, logger: ErrorLog, { pollMs = 2000, maxTenants = 1000 } = {}) {
  const models = watchModels(redis, logger, pollMs, maxTenants);
  const askMark = shareUntilReady(redis, catalogueMark);
  const report = reportOnce<string>(
    (err, tenant, mark) =>
      logger.error({ err, tenant, mark }, 'a catalogue cannot be read: its tenant is refused'),
    maxTenants,
  );

  /** Catalogues cannot change while their Cluster node is down: the last mark stays valid. */
  async function markBefore({ served }: Entry, error: unknown): Promise<string> {
    if (served === null || !(error instanceof ApiError && isCluster(await redis()))) throw error;
    return served.marked.mark;
  }

  const readOnce = singleFlights(async (_name: string, tenant: string, mark: string, entry: Entry) => {
    const client = await redis();
    try {
      return await readCatalogue(client, tenant, entry.served?.marked ?? null);
    } catch (error) {
      if (error instanceof ApiError) throw error;
      report(error, tenant, mark);
      throw unavailable('The catalogue of this tenant cannot be used right now', error);
    }
  });

  return {
    /** @throws ApiError UNAVAILABLE, also for unreadable data */
    get: async (tenant: string, known?: string): Promise<TenantModel> => {
      const entry = models.of(tenant);
      const asked = known ?? askMark(tenant).catch((error: unknown) => markBefore(entry, error));
      const [fitted, mark] = await Promise.all([entry.fitted, asked]);
      const current = entry.served?.marked ?? unset;
      const marked =
        current.mark === mark ? current : await readOnce(`${tenant}:${mark}`, tenant, mark, entry);
      if (entry.served?.fitted !== fitted || entry.served.marked.mark !== marked.mark)
        entry.served = { fitted, marked, model: { ...fitted, catalogue: marked.catalogue } };
      return entry.served.model;
    },
    version: async (tenant: string): Promise<number> => (await models.of(tenant).fitted).version,
    close: models.close,
  };
}

/** While Redis is unavailable, all models stay. */
function watchModels(redis: Redis, logger: ErrorLog, pollMs: number, maxTenants: number) {
  const entries = new Map<string, Entry>();
  const report = reportOnce<number>(
    (err, tenant, version) =>
      logger.error({ err, tenant, version }, 'a model cannot be read: the one before stays in force'),
    maxTenants,
  );

  function load(tenant: string): Entry {
    const entry: Entry = { fitted: loadFirst(tenant), seen: -1, served: null };
    entry.fitted.then(
      ({ version }) => {
        entry.seen = version;
      },
      // Pending calls get the error. The next call retries.
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

  const poll = singleFlight(async () => {
    if (entries.size === 0) return;
    try {
      const client = await redis();
      const tenants = [...entries.keys()];
      const versions = await whileRedisServes(client.hmget(modelsKey, ...tenants));
      await Promise.all(tenants.map((tenant, i) => renew(client, tenant, Number(versions[i] ?? 0))));
    } catch (error) {
      // Requests report an unavailable Redis.
      if (!(error instanceof ApiError)) throw error;
    }
  });

  async function renew(client: RedisClient, tenant: string, version: number): Promise<void> {
    const entry = entries.get(tenant);
    if (entry === undefined || entry.seen === -1 || entry.seen === version) return;
    try {
      entry.fitted = Promise.resolve(await readModel(client, tenant, version));
    } catch (error) {
      if (error instanceof ApiError) throw error;
      report(error, tenant, version);
    }
    entry.seen = version;
  }

  const timer = setInterval(poll, pollMs);
  timer.unref();
  return {
    of: (tenant: string): Entry => {
      const entry = entries.get(tenant) ?? load(tenant);
      keepRecent(entries, tenant, entry, maxTenants);
      return entry;
    },
    close: (): void => clearInterval(timer),
  };
}
