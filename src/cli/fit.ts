/** Fits the models' parameters on the answers so far, or goes back to earlier ones. */
import { type ClickHouseClient, ClickHouseError } from '@clickhouse/client';
import type { Endpoints } from '../embedded/data-dir.js';
import { joinOrStart } from '../embedded/servers.js';
import { ApiError } from '../errors.js';
import { fitParts } from '../fits.js';
import { StartError } from '../lifecycle.js';
import { type FitParts, recordChanges, runFits } from '../services/fit-models.js';
import type { RedisClient } from '../store/client.js';
import { openDeployment } from '../store/deployment.js';
import { connectWarehouse, ensureDatabase, isAlive } from '../warehouse/client.js';
import { migrate, SchemaError } from '../warehouse/migrations.js';
import { hasAttempts } from '../warehouse/presence.js';
import { type CommandContext, openRedis, startCommand } from './command.js';
import { type FitArguments, fitHelp, readFitArguments } from './fit-options.js';
import { fitsJson, fitsText, versionsJson, versionsText } from './fit-report.js';
import { createProgress } from './import-report.js';

/** @param argv arguments after the command */
export const main = (argv: readonly string[]): Promise<void> =>
  startCommand({ name: 'fit', help: fitHelp, read: readFitArguments, work: carryOut }, argv);

async function carryOut(context: CommandContext, args: FitArguments): Promise<void> {
  const { config, logger, closers } = context;
  const endpoints = await joinOrStart(config, logger, closers);
  const clickhouse = connectWarehouse(endpoints.clickhouseUrl, endpoints.clickhouseCluster);
  closers.add('ClickHouse connection', () => clickhouse.close());
  try {
    const redis = await openRedis(endpoints.redisUrl, context);
    await prepare(endpoints, clickhouse, redis);
    const options = { threads: args.threads, beside: false };
    const parts = fitParts({ redis, clickhouse }, endpoints, options, logger);
    process.stdout.write(`${await resultOf(context, parts, args)}\n`);
  } catch (error) {
    throw await explained(error, clickhouse);
  }
}

/** Servers that are away are no defect. */
async function explained(error: unknown, clickhouse: ClickHouseClient): Promise<unknown> {
  if (error instanceof StartError) return error;
  const away = error instanceof ApiError ? 'Redis' : (await isAlive(clickhouse)) ? null : 'ClickHouse';
  if (away === null) return error;
  return new StartError(`${away} does not answer; run the command again when it does`, { cause: error });
}

/** @throws StartError where the servers are not those of a service, or of a newer one */
async function prepare(
  { clickhouseUrl, clickhouseCluster }: Endpoints,
  clickhouse: ClickHouseClient,
  redis: RedisClient,
): Promise<void> {
  await ensureDatabase(clickhouseUrl, clickhouseCluster).catch((cause: unknown) => {
    throw cause instanceof ClickHouseError
      ? new StartError(`ClickHouse: ${cause.message}`, { cause })
      : cause;
  });
  await migrate(clickhouse, clickhouseCluster).catch((cause: unknown) => {
    throw cause instanceof SchemaError ? new StartError(cause.message, { cause }) : cause;
  });
  if ((await openDeployment(redis, () => hasAttempts(clickhouse))).state === 'emptied')
    throw new StartError('Redis came back empty while ClickHouse has attempts: rebuild it first');
}

async function resultOf(context: CommandContext, parts: FitParts, args: FitArguments): Promise<string> {
  const { action, tenant = '', json } = args;
  if (action.kind === 'fit') return fit(context, parts, args, action.dryRun);
  if (action.kind !== 'list') await change(parts, tenant, action);
  const versions = await parts.models.versions(tenant);
  return json
    ? versionsJson(tenant, await parts.models.inForce(tenant), versions)
    : versionsText(tenant, versions);
}

async function fit(
  { closers }: CommandContext,
  parts: FitParts,
  { tenant, json }: FitArguments,
  dryRun: boolean,
): Promise<string> {
  const abort = new AbortController();
  closers.add('fit', () => abort.abort());
  const progress = createProgress(closers);
  const onStep = (of: string, step: string): void => progress.show(`${of}: ${step}`);
  const fits = await runFits(parts, { tenant, dryRun, signal: abort.signal, onStep });
  progress.show('');
  return json ? fitsJson(fits) : fitsText(fits);
}

/** @throws StartError where there is no such version, or another came into force at the same moment */
async function change(
  parts: FitParts,
  tenant: string,
  action: { readonly kind: 'back' } | { readonly kind: 'use'; readonly version: number },
): Promise<void> {
  const inForce = await parts.models.inForce(tenant);
  const version = action.kind === 'use' ? action.version : await versionBefore(parts, tenant, inForce);
  if (version === inForce) throw new StartError(`Version ${version} of tenant ${tenant} is in force already`);
  const result = await parts.models.use(tenant, version, inForce);
  if (result === 'not-kept')
    throw new StartError(`Version ${version} of tenant ${tenant} is not kept; --list shows those that are`);
  if (result === 'superseded')
    throw new StartError(`Another version of tenant ${tenant} came into force meanwhile; try again`);
  await recordChanges(parts);
}

async function versionBefore({ models }: FitParts, tenant: string, inForce: number): Promise<number> {
  const current = (await models.versions(tenant)).find(({ version }) => version === inForce);
  if (current === undefined) throw new StartError(`Tenant ${tenant} has no version before ${inForce}`);
  return current.basedOn;
}
