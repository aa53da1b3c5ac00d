import { availableParallelism } from 'node:os';
import type { AnalystLimits } from '../../contracts/settings/analyst-limits.js';
import { BridgeError } from './errors.js';
import { formatSetting } from './sql.js';

type Settings = ReadonlyMap<string, string>;

/** A request can only lower these caps. */
const listCaps = ({ seconds, memoryBytes, rows }: AnalystLimits): [name: string, cap: number][] => [
  ['max_execution_time', seconds],
  ['max_memory_usage', memoryBytes],
  ...(rows > 0 ? [['max_rows_to_read', rows] satisfies [string, number]] : []),
  // The engine checks the time between blocks. Smaller blocks slow down sums over many rows: ten times with
  // 64 rows.
  ['max_block_size', 8192],
  ['max_joined_block_size_rows', 8192],
  // With 500 threads on two cores, an insert takes five times as long.
  ['max_threads', availableParallelism()],
];

/**
 * Without a wait for inserts (priority 1), inserts take twice as long. A longer wait per block would stop
 * analysts.
 */
const lowPriority = ['priority = 2', 'low_priority_query_wait_time_ms = 10'];

/*
 * Settings that only shape the result. format_schema*, format_template_* and output_format_schema are
 * missing, because they use files.
 */
const analystPrefixes = ['output_format_', 'date_time_', 'format_csv_', 'format_custom_'];
const analystNames: ReadonlySet<string> = new Set(
  `bool_true_representation bool_false_representation extremes join_use_nulls limit log_comment max_result_bytes
   max_result_rows max_rows_to_read offset result_overflow_mode session_timezone`.split(/\s+/),
);

function rejectSetting(name: string): never {
  throw new BridgeError(164, 'READONLY', `Cannot modify '${name}' setting in readonly mode`);
}

function capValue(settings: Settings, name: string, cap: number): number {
  const value = settings.get(name) ?? String(cap);
  const requested = Number(value);
  if (!Number.isFinite(requested) || value.trim() === '') rejectSetting(name);
  return requested > 0 && requested < cap ? requested : cap;
}

export const computeAnalystSeconds = (settings: Settings, { seconds }: AnalystLimits): number =>
  capValue(settings, 'max_execution_time', seconds);

/** @throws BridgeError READONLY for settings that analysts cannot change */
export function buildAnalystAssignments(settings: Settings, limits: AnalystLimits): string[] {
  const caps = listCaps(limits);
  const capped = new Set(caps.map(([name]) => name));
  const requested = [...settings].flatMap(([name, value]) => {
    const assignment = formatSetting(name, value);
    if ((name === 'readonly' && (value === '1' || value === '2')) || capped.has(name)) return [];
    const isAllowed = analystNames.has(name) || analystPrefixes.some((prefix) => name.startsWith(prefix));
    if (!isAllowed || name === 'output_format_schema') rejectSetting(name);
    return [assignment];
  });
  // By default, the engine chooses the number of threads.
  const capAssignments = caps
    .filter(([name]) => name !== 'max_threads' || settings.has(name))
    .map(([name, cap]) => formatSetting(name, String(capValue(settings, name, cap))));
  return [...requested, ...capAssignments, ...lowPriority];
}
