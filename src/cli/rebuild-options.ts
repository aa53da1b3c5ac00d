import { asideDays } from '../store/rebuild/replace-store.js';
import { parseArguments, usageOf } from './arguments.js';

export interface RebuildArguments {
  readonly verify: boolean;
  readonly replace: boolean;
  readonly json: boolean;
}

export const rebuildHelp = `Usage: npm run rebuild [-- options]

Restores Redis from ClickHouse after it came back empty: every learner byte for byte by replaying the answers,
event ids that are still remembered with their first answers, goals, catalogues, models, API keys. A Redis
Cluster that lost a node gets back what was on it. Where nothing is missing, nothing is done.

The service may run meanwhile: it answers 503 until all is there, and goes on by itself within seconds. A run that
was stopped is taken up by the next one where it stood.

Answers that were still in the outbox, in Redis alone, when Redis was lost are not in ClickHouse and cannot be
restored; callers who were not told 200 or who send them again with their event_id lose nothing.

Options:
  --verify   write nothing: compare every learner in Redis with what the answers in ClickHouse and those that still
             wait in Redis give by today's formulas, and tell the differences; exit code 1 where there are any, 2
             where learners could not be compared
  --replace  after an upgrade to other formulas, with every service stopped: move the learners of the version before
             aside, where they end in ${asideDays} days, and restore all by today's formulas. Refused while anything
             waits in Redis that ClickHouse does not have. Redis needs room for both
             An upgrade that only keeps learners in another layout needs no option: any rebuild moves them the same way
  --json     result as one line of JSON
  --help     this text

It uses the servers of the service that runs on DATA_DIR (or REDIS_URL and CLICKHOUSE_URL), or starts its own.
`;

const usage = usageOf('npm run rebuild [-- options]');

const options = {
  verify: { type: 'boolean', default: false },
  replace: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h' },
} as const;

/** @returns the arguments, or null if help was asked for. @throws StartError */
export function readRebuildArguments(argv: readonly string[]): RebuildArguments | null {
  const { values, positionals } = parseArguments(usage, argv, options);
  if (values.help) return null;
  if (positionals.length > 0) throw usage('there are no further arguments');
  if (values.verify && values.replace) throw usage('--verify and --replace exclude each other');
  return { verify: values.verify, replace: values.replace, json: values.json };
}
