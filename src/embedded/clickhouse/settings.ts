import { availableParallelism } from 'node:os';
import { BridgeError } from './errors.js';
import { isName, literal, tokensOf } from './sql.js';

/** Seconds that an analyst's query may take. */
const analystSeconds = 60;

/** Most that an analyst's query may take; a request may ask for less. */
const analystCaps: ReadonlyMap<string, number> = new Map([
  ['max_execution_time', analystSeconds],
  ['max_memory_usage', 2_000_000_000],
  // Time is looked at between blocks. Below this, sums over many rows take longer: with 1,024 rows a half, with 64 ten times.
  ['max_block_size', 8192],
  ['max_joined_block_size_rows', 8192],
  // The engine takes up to 256 for each core: with 500 on two cores an insert takes five times as long.
  ['max_threads', availableParallelism()],
]);

/*
 * Functions that make long values of short ones, or take more than linear time: what one row of theirs costs has no bound
 * (two texts of 65,536 characters compared: 3 s), so few of them go into a block.
 */
const dearFunctions =
  /distance|similarity|^(?:repeat|range|space|(?:l|r|left|right)pad(?:utf8)?|arraywithconstant|arrayresize|random.*string.*|randomprintableascii|bcrypt|sleep.*)$/i;
const dearBlockRows = 4;

/** The SET pairs that a statement of an analyst's asks for, as the engine prints it. */
export function dearAssignments(statement: string): string[] {
  const tokens = tokensOf(statement);
  const called = tokens.filter((token, index) => isName(token) && tokens[index + 1]?.text === '(');
  if (!called.some(({ text }) => dearFunctions.test(text))) return [];
  return ['max_block_size', 'max_joined_block_size_rows'].map((name) => `${name} = ${dearBlockRows}`);
}

/** Bound on one query of the service itself, in bytes. */
const serviceMemoryBytes = 4_000_000_000;

/*
 * Settings an analyst's request may carry: they shape the answer and nothing else. Not among them on
 * purpose: format_schema*, format_template_* and output_format_schema (they read and write files).
 */
const analystPrefixes = ['output_format_', 'date_time_', 'format_csv_', 'format_custom_'];
const analystNames: ReadonlySet<string> = new Set(
  `bool_true_representation bool_false_representation extremes join_use_nulls limit log_comment max_result_bytes
   max_result_rows max_rows_to_read offset result_overflow_mode session_timezone`.split(/\s+/),
);

/** A pair for SET. */
function pair(name: string, value: string): string {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
    throw new BridgeError(115, 'UNKNOWN_SETTING', `Unknown setting '${name.slice(0, 100)}'`);
  return `${name} = ${literal(value)}`;
}

function refuse(name: string): never {
  throw new BridgeError(164, 'READONLY', `Cannot modify '${name}' setting in readonly mode`);
}

type Settings = ReadonlyMap<string, string>;

/** What the request asks for, where that is below the cap. */
function cappedValue(settings: Settings, name: string, cap: number): number {
  const value = settings.get(name) ?? String(cap);
  const wanted = Number(value);
  if (!Number.isFinite(wanted) || value.trim() === '') refuse(name);
  return wanted > 0 && wanted < cap ? wanted : cap;
}

/**
 * The SET pairs of an analyst's request. Unknown and powerful settings are refused with READONLY; the caps are always set
 * and can only be lowered.
 */
export function analystAssignments(settings: Settings): string[] {
  const given = [...settings].flatMap(([name, value]) => {
    const assignment = pair(name, value);
    if ((name === 'readonly' && (value === '1' || value === '2')) || analystCaps.has(name)) return [];
    const isKnown = analystNames.has(name) || analystPrefixes.some((prefix) => name.startsWith(prefix));
    if (!isKnown || name === 'output_format_schema') refuse(name);
    return [assignment];
  });
  // Where nothing is asked for, the engine knows better how many cores it has.
  const caps = [...analystCaps]
    .filter(([name]) => name !== 'max_threads' || settings.has(name))
    .map(([name, cap]) => pair(name, String(cappedValue(settings, name, cap))));
  return [...given, ...caps];
}

/** How long an analyst's query may take, in milliseconds. */
export const analystLimitMs = (settings: Settings): number =>
  1000 * cappedValue(settings, 'max_execution_time', analystSeconds);

/** The SET pairs of a request of the service: whatever the engine knows, under one memory bound. */
export const serviceAssignments = (settings: Settings): string[] => [
  `max_memory_usage = ${serviceMemoryBytes}`,
  ...[...settings].map(([name, value]) => pair(name, value)),
];

/** `param_` values: bound by the engine on its own session, in its own escaping; never pasted into SQL. */
export const parameterAssignments = (parameters: Settings): string[] =>
  [...parameters].map(([name, value]) => pair(`param_${name}`, value));
