import { availableParallelism } from 'node:os';
import type { AnalystLimits } from '../../contracts/analyst-limits.js';
import { BridgeError } from './errors.js';
import { settingPair } from './sql.js';

type Settings = ReadonlyMap<string, string>;

/** Settings that are always set for an analyst; a request can only lower them. */
const capsOf = ({ seconds, memoryBytes, rows }: AnalystLimits): [name: string, cap: number][] => [
  ['max_execution_time', seconds],
  ['max_memory_usage', memoryBytes],
  ...(rows > 0 ? [['max_rows_to_read', rows] satisfies [string, number]] : []),
  // Time is looked at between blocks. Below this, sums over many rows take longer: with 1,024 rows a half, with 64 ten times.
  ['max_block_size', 8192],
  ['max_joined_block_size_rows', 8192],
  // The engine takes up to 256 for each core: with 500 on two cores an insert takes five times as long.
  ['max_threads', availableParallelism()],
];

/**
 * While an insert runs, which has priority 1, a query waits so long at each block: without it inserts take twice their time
 * beside an analyst's. Not longer, for an insert of minutes would stop analysts.
 */
const behindInserts = ['priority = 2', 'low_priority_query_wait_time_ms = 10'];

/*
 * Settings an analyst's request may carry: they shape the answer and nothing else. Not among them on
 * purpose: format_schema*, format_template_* and output_format_schema (they read and write files).
 */
const analystPrefixes = ['output_format_', 'date_time_', 'format_csv_', 'format_custom_'];
const analystNames: ReadonlySet<string> = new Set(
  `bool_true_representation bool_false_representation extremes join_use_nulls limit log_comment max_result_bytes
   max_result_rows max_rows_to_read offset result_overflow_mode session_timezone`.split(/\s+/),
);

function refuse(name: string): never {
  throw new BridgeError(164, 'READONLY', `Cannot modify '${name}' setting in readonly mode`);
}

/** What the request asks for, where that is below the cap. */
function cappedValue(settings: Settings, name: string, cap: number): number {
  const value = settings.get(name) ?? String(cap);
  const wanted = Number(value);
  if (!Number.isFinite(wanted) || value.trim() === '') refuse(name);
  return wanted > 0 && wanted < cap ? wanted : cap;
}

/** How long an analyst's request may run, in seconds. */
export const analystSeconds = (settings: Settings, { seconds }: AnalystLimits): number =>
  cappedValue(settings, 'max_execution_time', seconds);

/**
 * The SET pairs of an analyst's request. Unknown and powerful settings are refused with READONLY; the caps are always set
 * and can only be lowered.
 */
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
  // Where nothing is asked for, the engine knows better how many cores it has.
  const set = caps
    .filter(([name]) => name !== 'max_threads' || settings.has(name))
    .map(([name, cap]) => settingPair(name, String(cappedValue(settings, name, cap))));
  return [...given, ...set, ...behindInserts];
}
