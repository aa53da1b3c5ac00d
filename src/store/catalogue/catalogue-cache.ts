/** The models as they are served: each with its tenant's catalogue exactly as of now. */
import { emptyCatalogue } from '../../domain/catalogue/catalogue.js';
import type { TenantModel } from '../../domain/catalogue/tenant-model.js';
import { ApiError, unavailable } from '../../errors.js';
import type { Logger } from '../../telemetry.js';
import { createModelCache, type ModelCache } from '../models/model-cache.js';
import { isCluster, type RedisClient } from '../redis/client.js';
import { keepRecent, reportOnce } from '../redis/recent.js';
import { catalogueMark, type MarkedCatalogue, readCatalogue } from './catalogue-store.js';

export type ServedModels = ReturnType<typeof createServedModels>;

export interface ServedModelsOptions {
  readonly models: ModelCache;
  readonly redis: () => Promise<RedisClient>;
  /** Hears of a catalogue that cannot be read, once for each mark; its tenant is refused until it can be. */
  readonly onUnreadable: (error: unknown, tenant: string, mark: string) => void;
  readonly maxTenants?: number;
}

interface Served {
  /** Without the catalogue. */
  readonly fitted: TenantModel;
  readonly marked: MarkedCatalogue;
  readonly model: TenantModel;
}

/** The models in force, each with its catalogue, watched until they are closed; what cannot be read is logged. */
export function serveModels(redis: () => Promise<RedisClient>, logger: Logger): ServedModels {
  const models = createModelCache({
    redis,
    onUnreadable: (error, tenant, version) =>
      logger.error({ err: error, tenant, version }, 'a model cannot be read: the one before stays in force'),
  });
  return createServedModels({
    models,
    redis,
    onUnreadable: (error, tenant, mark) =>
      logger.error({ err: error, tenant, mark }, 'a catalogue cannot be read: its tenant is refused'),
  });
}

const unset: MarkedCatalogue = { mark: '', catalogue: emptyCatalogue };

/**
 * Each use asks Redis for the catalogue's mark, in one small command, and reads the catalogue only where it is
 * another: who set a skill sees it in the very next answer, whichever process gives it. While nothing changes, a
 * tenant's model is the same object. While the catalogue cannot be read, there is no model.
 */
export function createServedModels(options: ServedModelsOptions) {
  const { models, redis, maxTenants = 1000 } = options;
  const report = reportOnce(options.onUnreadable, maxTenants);
  /** In order of use, the longest unused first. */
  const kept = new Map<string, Served>();
  /** By tenant and the mark that was seen before: what comes is that catalogue, or a later one. */
  const loading = new Map<string, Promise<MarkedCatalogue>>();
  const asking = new Map<string, Promise<string>>();

  async function get(tenant: string, known?: string): Promise<TenantModel> {
    const asked = known ?? askMark(tenant).catch((error: unknown) => markBefore(tenant, error));
    const [fitted, mark] = await Promise.all([models.get(tenant), asked]);
    return keep(tenant, fitted, await catalogueAt(tenant, mark));
  }

  /** All catalogues are on one node of a Cluster: while it is unavailable nobody can change them, and the others go on. */
  async function markBefore(tenant: string, error: unknown): Promise<string> {
    const before = kept.get(tenant);
    const isKnown = error instanceof ApiError && isCluster(await redis());
    if (before === undefined || !isKnown) throw error;
    return before.marked.mark;
  }

  /** Those who ask in one turn share the command, which goes out after them. */
  function askMark(tenant: string): Promise<string> {
    const ask = () =>
      redis()
        .finally(() => asking.delete(tenant))
        .then((client) => catalogueMark(client, tenant));
    const asked = asking.get(tenant) ?? ask();
    asking.set(tenant, asked);
    return asked;
  }

  async function catalogueAt(tenant: string, mark: string): Promise<MarkedCatalogue> {
    const current = kept.get(tenant)?.marked;
    if (current?.mark === mark) return current;
    if (mark === '') return unset;
    const key = `${tenant}:${mark}`;
    const load = loading.get(key) ?? read(tenant, mark).finally(() => loading.delete(key));
    loading.set(key, load);
    return load;
  }

  async function read(tenant: string, mark: string): Promise<MarkedCatalogue> {
    const client = await redis();
    try {
      return await readCatalogue(client, tenant, kept.get(tenant)?.marked ?? null);
    } catch (error) {
      if (error instanceof ApiError) throw error;
      report(error, tenant, mark);
      throw unavailable('The catalogue of this tenant cannot be used right now', error);
    }
  }

  function keep(tenant: string, fitted: TenantModel, marked: MarkedCatalogue): TenantModel {
    const before = kept.get(tenant);
    const same = before?.fitted === fitted && before.marked.mark === marked.mark;
    const served = same ? before : { fitted, marked, model: { ...fitted, catalogue: marked.catalogue } };
    keepRecent(kept, tenant, served, maxTenants);
    return served.model;
  }

  return {
    /** @param mark of the catalogue as of now, where it was read already */
    get,
    /** Of the model in force, whatever the catalogue is. */
    version: async (tenant: string): Promise<number> => (await models.get(tenant)).version,
    close: models.close,
  };
}
