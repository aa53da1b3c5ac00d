import { parseArguments, readInteger, usageOf } from './arguments.js';

export interface RetainArguments {
  /** Undefined: as the service is set. */
  readonly days: number | undefined;
  readonly dryRun: boolean;
}

export const retainHelp = `Usage: npm run retain [-- options]

Drops stored answers and scored forecasts that are old, whole months of arrival, as the service does by itself with
ATTEMPT_RETENTION_DAYS. Their daily sums and what learners know stay. There is no way back but a backup.

Options:
  --dry-run   tell what would be dropped, drop nothing
  --days N    age in days, 1 to 36500 (default: ATTEMPT_RETENTION_DAYS)
  --help      this text

A month whose answers may still be on their way has to wait; the log says for what.
It uses the servers of the service that runs on DATA_DIR, or starts its own.
`;

const maxDays = 36_500;

export const retainUsage = usageOf('npm run retain [-- options]');

/** @returns the arguments, or null if help was asked for. @throws StartError */
export function readRetainArguments(argv: readonly string[]): RetainArguments | null {
  const { values, positionals } = parseArguments(retainUsage, argv, {
    days: { type: 'string' },
    'dry-run': { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  });
  if (values.help) return null;
  if (positionals.length > 0) throw retainUsage(`${JSON.stringify(positionals[0])} is no option`);
  const { days } = values;
  return {
    days: days === undefined ? undefined : readInteger(retainUsage, '--days', days, 1, maxDays),
    dryRun: values['dry-run'],
  };
}
