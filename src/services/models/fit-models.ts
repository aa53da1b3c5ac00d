/** Fits tenants one by one and publishes their models. A killed run leaves the old or the new version active. */
import type { FitPool } from '../../compute/job-pools.js';
import { decodeModelSteps, encodeModel } from '../../contracts/models/stored-model.js';
import { fitConstants } from '../../domain/base/fit-constants.js';
import { formulaVersion } from '../../domain/base/formula-version.js';
import { type FitReport, fitTenant, selectTrainingLearners } from '../../domain/fit/fit-tenant.js';
import { ApiError } from '../../errors.js';
import type { Logger } from '../../logger.js';
import { runInSlices } from '../../slices.js';
import type { ModelStore } from '../../store/models/model-store.js';
import type { ModelHistory } from '../../warehouse/ingest/model-history.js';
import type { TenantAnswers } from '../../warehouse/reads/answer-columns.js';
import type { createOutcomeReads } from '../../warehouse/reads/forecast-outcomes.js';

export interface TenantFit {
  readonly tenant: string;
  readonly outcome: 'published' | 'not_better' | 'nothing_new' | 'too_few' | 'superseded' | 'dry_run';
  readonly version: number;
  readonly report: FitReport | null;
}

export interface ModelDependencies {
  readonly models: ModelStore;
  readonly history: ModelHistory;
  readonly logger: Logger;
}

export interface FitDependencies extends ModelDependencies {
  readonly tenants: () => Promise<TenantAnswers[]>;
  readonly outcomes: ReturnType<typeof createOutcomeReads>;
  readonly openPool: () => FitPool;
}

export interface FitRunOptions {
  readonly tenant?: string | undefined;
  readonly dryRun?: boolean;
  readonly signal?: AbortSignal;
  readonly onStep?: (tenant: string, step: string) => void;
}

/**
 * @throws immediately after an abort, if Redis is unavailable, or if ClickHouse is unavailable before or after
 * the fits; at the end if a tenant's fit failed
 */
export async function runFits(
  dependencies: FitDependencies,
  options: FitRunOptions = {},
): Promise<TenantFit[]> {
  const { signal } = options;
  await recordModelChanges(dependencies);
  const all = await dependencies.tenants();
  const fits: TenantFit[] = [];
  const failures: Error[] = [];
  let pool: FitPool | undefined;
  const abort = (): void => void pool?.close();
  signal?.addEventListener('abort', abort);
  const getPool = (): FitPool => {
    signal?.throwIfAborted();
    pool ??= dependencies.openPool();
    return pool;
  };
  try {
    for (const tenant of all.filter((each) => (options.tenant ?? each.tenant) === each.tenant)) {
      signal?.throwIfAborted();
      try {
        fits.push(await fitAndPublish(dependencies, tenant, options, getPool));
      } catch (error) {
        if (error instanceof ApiError || signal?.aborted) throw error;
        failures.push(new Error(`the fit of tenant ${tenant.tenant} failed`, { cause: error }));
      }
    }
  } finally {
    signal?.removeEventListener('abort', abort);
    await pool?.close();
  }
  await recordModelChanges(dependencies);
  if (failures.length > 1)
    throw new AggregateError(failures, `the fits of ${failures.length} tenants failed`);
  if (failures.length > 0) throw failures[0];
  return fits;
}

async function fitAndPublish(
  { models, logger }: FitDependencies,
  { tenant, mark }: TenantAnswers,
  { dryRun = false, onStep }: FitRunOptions,
  getPool: () => FitPool,
): Promise<TenantFit> {
  const inputMark = `${mark} ${formulaVersion}`;
  const basedOn = await models.fetchActiveVersion(tenant);
  const unchanged = { tenant, version: basedOn };
  // A dry run does not prevent the next fit of the same answers.
  const recordFit = async (fit: TenantFit): Promise<TenantFit> => {
    if (!dryRun) await models.finishFit(tenant, inputMark);
    return fit;
  };
  if (!dryRun && (await models.fetchLastFit(tenant)) === inputMark)
    return { ...unchanged, outcome: 'nothing_new', report: null };
  const fitPool = getPool();
  const since = performance.now();
  const showStep = (step: string): void => onStep?.(tenant, step);
  showStep('reading answers');
  const { sampledOneIn, learnerHash, itemHashes, ...columns } = await fitPool.readAnswers(tenant);
  const training = selectTrainingLearners(learnerHash);
  if (training.length < fitConstants.minLearners || !training.includes(0))
    return recordFit({ ...unchanged, outcome: 'too_few', report: null });
  const version = dryRun ? basedOn + 1 : await models.reserveVersion(tenant);
  const input = {
    ...columns,
    training,
    current: await models.read(tenant, basedOn),
    currentItems: basedOn === 0 ? null : await fitPool.readItems(tenant, basedOn, itemHashes),
    version,
    fittedAt: new Date().toISOString(),
  };
  const { model, items, changed, ...fitted } = await fitTenant(input, fitPool, showStep);
  const report = { ...fitted.report, sampledOneIn, seconds: Math.round(performance.now() - since) / 1000 };
  if (!changed) return recordFit({ ...unchanged, outcome: 'not_better', report });
  if (dryRun) return { ...unchanged, outcome: 'dry_run', report };
  showStep('publishing');
  const text = encodeModel(model);
  // Throws for a model that cannot be decoded, as with NaN: stored, it would leave the tenant without a model.
  await runInSlices(decodeModelSteps(text));
  const published = await fitPool.publish({
    tenant,
    version,
    basedOn,
    model: text,
    report: JSON.stringify(report),
    items: items && { ...items, hashes: itemHashes },
    publishedAt: Date.now(),
  });
  if (!published)
    return { tenant, outcome: 'superseded', version: await models.fetchActiveVersion(tenant), report };
  logger.info({ tenant, version, answers: report.answers, seconds: report.seconds }, 'model published');
  return recordFit({ tenant, outcome: 'published', version, report });
}

/** Copies publications that ClickHouse lacks. Logs a tenant's failure; the next run repeats its copies in order. */
export async function recordModelChanges({ models, history, logger }: ModelDependencies): Promise<void> {
  const recorded = await history.fetchLastChanges();
  for (const tenant of await models.listTenants()) {
    try {
      for (const change of await models.listChangesAfter(tenant, recorded.get(tenant) ?? 0))
        await history.recordChange(change);
    } catch (error) {
      logger.error({ err: error, tenant }, 'cannot copy model changes to ClickHouse; it is retried');
    }
  }
}
