import { shareUntilReady, singleFlight, singleFlightByName } from '../../concurrency.js';
import { emptyCatalogue } from '../../domain/catalogue/catalogue.js';
import type { TenantModel } from '../../domain/catalogue/tenant-model.js';
import { ApiError, unavailable } from '../../errors.js';
import { readCalibration } from '../models/calibration-store.js';
import { fetchActiveVersion, readModel } from '../models/model-store.js';
import { reportOnce, setRecentlyUsed } from '../redis/commands/recently-used.js';
import { isCluster, mapRedisErrors, type RedisClient } from '../redis/connection/client.js';
import { activeModelsKey, calibratedTenantsKey } from '../redis/keys.js';
import { type CatalogueSnapshot, fetchCatalogueMark, readCatalogue } from './catalogue-store.js';

export type ServedModels = ReturnType<typeof createServedModels>;

type Redis = () => Promise<RedisClient>;
interface ErrorLog {
  error(facts: Readonly<Record<string, unknown>>, message: string): void;
}

interface TenantEntry {
  fittedModel: Promise<TenantModel>;
  /** Last version and time of the calibration read, even if unreadable; null during the first load. */
  seenMark: string | null;
  served: {
    readonly fittedModel: TenantModel;
    readonly snapshot: CatalogueSnapshot;
    readonly model: TenantModel;
  } | null;
}

const emptySnapshot: CatalogueSnapshot = { mark: '', catalogue: emptyCatalogue };

/**
 * A model may be out of date by `pollMs`. Each call reads the catalogue's mark, and the catalogue if the mark
 * changed. Without changes, the same object is returned.
 */
export function createServedModels(
  redis: Redis,
  logger: ErrorLog,
  { pollMs = 2000, maxTenants = 1000 } = {},
) {
  const models = pollModels(redis, logger, pollMs, maxTenants);
  const fetchMark = shareUntilReady(redis, fetchCatalogueMark);
  const report = reportOnce<string>(
    (err, tenant, mark) =>
      logger.error(
        { err, tenant, mark },
        'cannot read a skill catalogue; requests of its tenant are rejected with 503',
      ),
    maxTenants,
  );

  /** Catalogues cannot change while their Cluster node is down: the last mark stays valid. */
  async function useLastMark({ served }: TenantEntry, error: unknown): Promise<string> {
    if (served === null || !(error instanceof ApiError && isCluster(await redis()))) throw error;
    return served.snapshot.mark;
  }

  const readSnapshot = singleFlightByName(
    async (_name: string, tenant: string, mark: string, entry: TenantEntry) => {
      const client = await redis();
      try {
        return await readCatalogue(client, tenant, entry.served?.snapshot ?? null);
      } catch (error) {
        if (error instanceof ApiError) throw error;
        report(error, tenant, mark);
        throw unavailable('The skill catalogue of this tenant is unreadable; see the service log.', error);
      }
    },
  );

  return {
    /** @throws ApiError UNAVAILABLE, also for unreadable data */
    get: async (tenant: string, knownMark?: string): Promise<TenantModel> => {
      const entry = models.getEntry(tenant);
      const markRead = knownMark ?? fetchMark(tenant).catch((error: unknown) => useLastMark(entry, error));
      const [fittedModel, mark] = await Promise.all([entry.fittedModel, markRead]);
      const current = entry.served?.snapshot ?? emptySnapshot;
      const snapshot =
        current.mark === mark ? current : await readSnapshot(`${tenant}:${mark}`, tenant, mark, entry);
      if (entry.served?.fittedModel !== fittedModel || entry.served.snapshot.mark !== snapshot.mark)
        entry.served = { fittedModel, snapshot, model: { ...fittedModel, catalogue: snapshot.catalogue } };
      return entry.served.model;
    },
    version: async (tenant: string): Promise<number> => (await models.getEntry(tenant).fittedModel).version,
    close: models.close,
  };
}

/** While Redis is unavailable, all models stay. */
function pollModels(redis: Redis, logger: ErrorLog, pollMs: number, maxTenants: number) {
  const entries = new Map<string, TenantEntry>();
  const report = reportOnce<number>(
    (err, tenant, version) =>
      logger.error({ err, tenant, version }, 'cannot read a model; the previous model stays active'),
    maxTenants,
  );

  function createEntry(tenant: string): TenantEntry {
    const entry: TenantEntry = { fittedModel: loadActiveModel(tenant), seenMark: null, served: null };
    entry.fittedModel.then(
      ({ version, accuracy }) => {
        entry.seenMark = `${version} ${accuracy.calibration?.at ?? 0}`;
      },
      // Pending calls get the error. The next call retries.
      () => entries.get(tenant) === entry && entries.delete(tenant),
    );
    return entry;
  }

  async function loadActiveModel(tenant: string): Promise<TenantModel> {
    const client = await redis();
    const version = await fetchActiveVersion(client, tenant);
    try {
      return await readCalibratedModel(client, tenant, version);
    } catch (error) {
      if (error instanceof ApiError) throw error;
      report(error, tenant, version);
      throw unavailable('The model of this tenant is unreadable; see the service log.', error);
    }
  }

  /** Without the calibration if it is unreadable, or was made for the default intervals. */
  async function readCalibratedModel(
    client: RedisClient,
    tenant: string,
    version: number,
  ): Promise<TenantModel> {
    const [model, calibration] = await Promise.all([
      readModel(client, tenant, version),
      readCalibration(client, tenant, (err) =>
        logger.error({ err, tenant }, 'cannot read a calibration; intervals are served without it'),
      ),
    ]);
    if (calibration?.isFitted !== model.accuracy.cases > 0) return model;
    return { ...model, accuracy: { ...model.accuracy, calibration } };
  }

  const poll = singleFlight(async () => {
    if (entries.size === 0) return;
    try {
      const client = await redis();
      const tenants = [...entries.keys()];
      const [versions = [], times = []] = await mapRedisErrors(
        Promise.all([activeModelsKey, calibratedTenantsKey].map((key) => client.hmget(key, ...tenants))),
      );
      const refresh = (tenant: string, i: number): Promise<void> =>
        refreshEntry(client, tenant, Number(versions[i] ?? 0), `${versions[i] ?? 0} ${times[i] ?? 0}`);
      await Promise.all(tenants.map(refresh));
    } catch (error) {
      // Requests report an unavailable Redis.
      if (!(error instanceof ApiError)) throw error;
    }
  });

  async function refreshEntry(client: RedisClient, tenant: string, version: number, mark: string) {
    const entry = entries.get(tenant);
    if (entry === undefined || entry.seenMark === null || entry.seenMark === mark) return;
    try {
      entry.fittedModel = Promise.resolve(await readCalibratedModel(client, tenant, version));
    } catch (error) {
      if (error instanceof ApiError) throw error;
      report(error, tenant, version);
    }
    entry.seenMark = mark;
  }

  const timer = setInterval(poll, pollMs);
  timer.unref();
  return {
    getEntry: (tenant: string): TenantEntry => {
      const entry = entries.get(tenant) ?? createEntry(tenant);
      setRecentlyUsed(entries, tenant, entry, maxTenants);
      return entry;
    },
    close: (): void => clearInterval(timer),
  };
}
