import { parseArguments, usageOf } from './arguments.js';

export interface RebuildArguments {
  readonly verify: boolean;
  readonly json: boolean;
}

export const rebuildHelp = `Usage: npm run rebuild [-- options]

Restores Redis from ClickHouse after it came back empty: every learner byte for byte by replaying the answers,
event ids that are still remembered with their first answers, goals, catalogues, models, API keys. A Redis
Cluster that lost a node gets back what was on it. Where nothing is missing, nothing is done.

After an upgrade to a version that keeps learners otherwise, with every service stopped, it restores all of them as this
version keeps them. It refuses that while anything waits in Redis that ClickHouse does not have.

The service may run meanwhile: it answers 503 until all is there, and goes on by itself within seconds. A run that
was stopped is taken up by the next one where it stood.

Answers that were still in the outbox, in Redis alone, when Redis was lost are not in ClickHouse and cannot be
restored; callers who got no 200 or who send them again with their event_id lose nothing.

Options:
  --verify   write nothing: compare every learner in Redis with what the answers in ClickHouse and those that still
             wait in Redis give, and print the differences; exit code 1 where there are any, 2 where learners could
             not be compared
  --json     result as one line of JSON
  --help     this text

It uses the servers of the service that runs on DATA_DIR (or REDIS_URL and CLICKHOUSE_URL), or starts its own.
`;

const usage = usageOf('npm run rebuild [-- options]');

const options = {
  verify: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h' },
} as const;

/** @returns the arguments, or null if help was asked for. @throws StartError */
export function readRebuildArguments(argv: readonly string[]): RebuildArguments | null {
  const { values, positionals } = parseArguments(usage, argv, options);
  if (values.help) return null;
  if (positionals.length > 0) throw usage('there are no further arguments');
  return { verify: values.verify, json: values.json };
}
