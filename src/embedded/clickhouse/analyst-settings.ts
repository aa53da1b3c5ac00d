import { availableParallelism } from 'node:os';
import type { AnalystLimits } from '../../contracts/analyst-limits.js';
import { BridgeError } from './errors.js';
import { settingPair } from './sql.js';

type Settings = ReadonlyMap<string, string>;

/** Caps of an analyst's settings: a request can only lower them. */
const capsOf = ({ seconds, memoryBytes, rows }: AnalystLimits): [name: string, cap: number][] => [
  ['max_execution_time', seconds],
  ['max_memory_usage', memoryBytes],
  ...(rows > 0 ? [['max_rows_to_read', rows] satisfies [string, number]] : []),
  // The engine checks the time between blocks. Smaller blocks make sums over many rows slower: half as long again with 1,024
  // rows, ten times as long with 64.
  ['max_block_size', 8192],
  ['max_joined_block_size_rows', 8192],
  // The engine accepts up to 256 per core. With 500 on two cores, an insert takes five times as long.
  ['max_threads', availableParallelism()],
];

/**
 * A query waits this long per block while an insert (priority 1) runs. Otherwise inserts take twice as long. A longer wait
 * would stop analysts during an insert of minutes.
 */
const behindInserts = ['priority = 2', 'low_priority_query_wait_time_ms = 10'];

/*
 * Settings that only shape the result. Left out because they read and write files: format_schema*, format_template_* and
 * output_format_schema.
 */
const analystPrefixes = ['output_format_', 'date_time_', 'format_csv_', 'format_custom_'];
const analystNames: ReadonlySet<string> = new Set(
  `bool_true_representation bool_false_representation extremes join_use_nulls limit log_comment max_result_bytes
   max_result_rows max_rows_to_read offset result_overflow_mode session_timezone`.split(/\s+/),
);

function refuse(name: string): never {
  throw new BridgeError(164, 'READONLY', `Cannot modify '${name}' setting in readonly mode`);
}

/** The request's value if it is below the cap. */
function cappedValue(settings: Settings, name: string, cap: number): number {
  const value = settings.get(name) ?? String(cap);
  const wanted = Number(value);
  if (!Number.isFinite(wanted) || value.trim() === '') refuse(name);
  return wanted > 0 && wanted < cap ? wanted : cap;
}

export const analystSeconds = (settings: Settings, { seconds }: AnalystLimits): number =>
  cappedValue(settings, 'max_execution_time', seconds);

/** SET pairs of an analyst's request, with the caps. @throws BridgeError READONLY for other settings */
export function analystAssignments(settings: Settings, limits: AnalystLimits): string[] {
  const caps = capsOf(limits);
  const capped = new Set(caps.map(([name]) => name));
  const given = [...settings].flatMap(([name, value]) => {
    const assignment = settingPair(name, value);
    if ((name === 'readonly' && (value === '1' || value === '2')) || capped.has(name)) return [];
    const isKnown = analystNames.has(name) || analystPrefixes.some((prefix) => name.startsWith(prefix));
    if (!isKnown || name === 'output_format_schema') refuse(name);
    return [assignment];
  });
  // Without a requested value, the engine chooses the number of threads itself.
  const set = caps
    .filter(([name]) => name !== 'max_threads' || settings.has(name))
    .map(([name, cap]) => settingPair(name, String(cappedValue(settings, name, cap))));
  return [...given, ...set, ...behindInserts];
}
