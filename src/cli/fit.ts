/** Fits the models' parameters on the answers so far, or goes back to earlier ones. */
import { fitParts } from '../app/consumers.js';
import { StartError } from '../lifecycle.js';
import { type FitParts, recordChanges, runFits } from '../services/models/fit-models.js';
import { type CommandContext, commandOf, createProgress } from './command.js';
import { type FitArguments, fitHelp, readFitArguments } from './fit-options.js';
import { fitsJson, fitsText, versionsJson, versionsText } from './fit-report.js';
import { withDeployment } from './servers.js';

export const main = commandOf({ name: 'fit', help: fitHelp, read: readFitArguments, work: carryOut });

function carryOut(context: CommandContext, args: FitArguments): Promise<void> {
  return withDeployment(context, async ({ endpoints, clickhouse, redis }) => {
    const options = { threads: args.threads, beside: false };
    const parts = fitParts({ redis, clickhouse }, endpoints, options, context.logger);
    context.stdout.write(`${await resultOf(context, parts, args)}\n`);
  });
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
  context: CommandContext,
  parts: FitParts,
  { tenant, json }: FitArguments,
  dryRun: boolean,
): Promise<string> {
  const abort = new AbortController();
  context.closers.add('fit', () => abort.abort());
  const progress = createProgress(context);
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
