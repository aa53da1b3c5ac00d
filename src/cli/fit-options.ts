import { parseArguments, readInteger, readTenant, usageOf } from './arguments.js';

export interface FitArguments {
  /** undefined: all with answers. */
  readonly tenant: string | undefined;
  /** What to do: fit, or choose among the versions that are there. */
  readonly action:
    | { readonly kind: 'fit'; readonly dryRun: boolean }
    | { readonly kind: 'list' }
    | { readonly kind: 'back' }
    | { readonly kind: 'use'; readonly version: number };
  /** undefined: as many as the machine has cores. */
  readonly threads: number | undefined;
  readonly json: boolean;
}

export const fitHelp = `Usage: npm run fit [-- options]

Fits the models on all answers in ClickHouse, tenant by tenant, and publishes what predicts the answers of
learners that it did not see no worse than what is in force. Running services take a new version within
seconds. A tenant without new answers since its last fit is skipped; answers that still wait for ClickHouse
are not in the fit.

Options:
  --tenant T    only this tenant (default: all with answers)
  --dry-run     fit and judge, publish nothing
  --threads N   worker threads, 1 to 64 (default: one for each core)
  --list        the tenant's versions, without fitting
  --back        go back to the version before the one in force
  --use N       use version N again; 0 is the state before the first fit
  --json        result as one line of JSON
  --help        this text

--list, --back and --use mean tenant "default" unless --tenant names another. The last 10 versions can be
used again; those whose items were forgotten (all but the last 3) learn the difficulty of items anew.
The next fit that sees new answers may publish a newer version: FIT_INTERVAL_HOURS=0 stops the scheduled ones.
It uses the servers of the service that runs on DATA_DIR, or starts its own.
`;

const defaultTenant = 'default';
const maxThreads = 64;

/** @returns the arguments, or null if help was asked for. @throws StartError */
export function readFitArguments(argv: readonly string[]): FitArguments | null {
  const values = parse(argv);
  if (values.help) return null;
  const action = readAction(values);
  const tenant = values.tenant === undefined ? undefined : readTenant(values.tenant);
  return {
    tenant: action.kind === 'fit' ? tenant : (tenant ?? defaultTenant),
    action,
    threads:
      values.threads === undefined
        ? undefined
        : readInteger(usage, '--threads', values.threads, 1, maxThreads),
    json: values.json,
  };
}

const usage = usageOf('npm run fit [-- options]');

function parse(argv: readonly string[]) {
  const { values, positionals } = parseArguments(usage, argv, {
    tenant: { type: 'string' },
    'dry-run': { type: 'boolean', default: false },
    threads: { type: 'string' },
    list: { type: 'boolean', default: false },
    back: { type: 'boolean', default: false },
    use: { type: 'string' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  });
  if (positionals.length > 0) throw usage(`${JSON.stringify(positionals[0])} is no option`);
  return values;
}

function readAction(values: ReturnType<typeof parse>): FitArguments['action'] {
  const { list, back, use } = values;
  const chosen = [values['dry-run'], list, back, use !== undefined].filter(Boolean).length;
  if (chosen > 1) throw usage('--dry-run, --list, --back and --use exclude one another');
  if (list) return { kind: 'list' };
  if (back) return { kind: 'back' };
  if (use !== undefined) return { kind: 'use', version: readInteger(usage, '--use', use, 0, 2 ** 32 - 1) };
  return { kind: 'fit', dryRun: values['dry-run'] };
}
