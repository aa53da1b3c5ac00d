import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { availableParallelism } from 'node:os';
import { checkParameterValue } from './analyst.js';
import { BridgeError, notAllowed } from './errors.js';
import type { EngineJob, Lane, RowInsert } from './lanes.js';
import { answerFormat, isStreamable, leadingWord, literal, parseInsertHead } from './sql.js';

/** Seconds that an analyst's query may take. */
const analystSeconds = 60;

const analystCaps: ReadonlyMap<string, number> = new Map([
  ['max_execution_time', analystSeconds],
  ['max_memory_usage', 2_000_000_000],
  // Time is looked at between blocks. Below this, sums over many rows take longer: with 1,024 rows a half, with 64 ten times.
  ['max_block_size', 8192],
  ['max_joined_block_size_rows', 8192],
  // The engine takes up to 256 for each core: with 500 on two cores an insert takes five times as long.
  ['max_threads', availableParallelism()],
]);

/** Bound on one query of the service itself, in bytes; the service may set another. */
const serviceMemory = 'max_memory_usage = 4000000000';

/*
 * Settings an analyst's request may carry: they shape the answer and nothing else. Not among them on
 * purpose: format_schema*, format_template_* and output_format_schema (they read and write files).
 */
const analystPrefixes = ['output_format_', 'date_time_', 'format_csv_', 'format_custom_'];
const analystNames: ReadonlySet<string> = new Set(
  `bool_true_representation bool_false_representation extremes join_use_nulls limit log_comment max_result_bytes
   max_result_rows max_rows_to_read offset result_overflow_mode session_timezone`.split(/\s+/),
);

type Settings = ReadonlyMap<string, string>;

function pair(name: string, value: string): string {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
    throw new BridgeError(115, 'UNKNOWN_SETTING', `Unknown setting '${name.slice(0, 100)}'`);
  return `${name} = ${literal(value)}`;
}

const pairs = (settings: Settings): string[] => Array.from(settings, ([name, value]) => pair(name, value));

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

interface RequestOptions {
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly method: string;
  /** From the URL; null for `/`. */
  readonly pathDatabase: string | null;
  readonly defaultDatabase: string;
  readonly analyst: boolean;
  readonly id: string;
}

/** URL parameters that concern the HTTP exchange, never the engine. */
const exchangeParameters: ReadonlySet<string> = new Set(
  `add_http_cors_header buffer_size cancel_http_readonly_queries_on_client_close client_protocol_version close_session
   compress database decompress default_format enable_http_compression http_headers_progress_interval_ms
   http_write_exception_in_output_format http_zlib_compression_level password query query_id quota_key role
   send_progress_in_http_headers session_check session_id session_timeout stacktrace user
   wait_end_of_query`.split(/\s+/),
);

const readingWords: ReadonlySet<string> = new Set(
  'SELECT WITH FROM SHOW DESCRIBE DESC EXISTS EXPLAIN ('.split(' '),
);
const isReading = (statement: string): boolean => readingWords.has(leadingWord(statement));

/** Only about who waits for whom; what a request may do is not decided here. */
export function laneOf(statement: string, analyst: boolean): Lane {
  if (analyst) return 'analyst';
  return isReading(statement) ? 'read' : 'write';
}

const headBytes = 64 * 1024;

/** The statement stands in the URL, with rows in the body, or both in the body. */
function cutStatement(query: string, body: Buffer): { statement: string; insert: RowInsert | null } {
  const isInUrl = query.trim() !== '';
  const text = isInUrl ? query : body.subarray(0, headBytes).toString('utf8');
  const head = body.length > 0 ? parseInsertHead(text) : null;
  if (head === null) {
    const bytes = isInUrl ? Buffer.concat([Buffer.from(`${query}\n`), body]) : body;
    const statement = bytes.toString('utf8').trim();
    if (statement === '') throw new BridgeError(62, 'SYNTAX_ERROR', 'Empty query');
    if (!isUtf8(bytes)) throw new BridgeError(62, 'SYNTAX_ERROR', 'The statement is no UTF-8');
    return { statement, insert: null };
  }
  const { into, format, rowsAt } = head;
  const before = Buffer.from(text.slice(0, rowsAt));
  const rows = isInUrl
    ? Buffer.concat([Buffer.from(text.slice(rowsAt)), body])
    : body.subarray(before.length);
  return { statement: before.toString(), insert: { into, format, rows } };
}

/** Clients name `default` where nothing was set; for an analyst that is the service's database. */
function databaseOf(options: RequestOptions): string {
  const { query, headers, pathDatabase, analyst } = options;
  const wanted = query.get('database') ?? header(headers, 'x-clickhouse-database') ?? pathDatabase;
  // There every name without a database would be one of the engine's own, and pass the guard.
  if (analyst && wanted === 'system') notAllowed('the database system');
  return wanted === null || (analyst && wanted === 'default') ? options.defaultDatabase : wanted;
}

function header(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : undefined;
}

/** Bound on an answer that is made as a whole, in the engine's own bytes; its text may be a few times that. */
const wholeAnswerBytes = 64_000_000;

function answerBound(query: URLSearchParams): string {
  const wanted = Math.floor(Number(query.get('max_result_bytes') ?? 0));
  return `max_result_bytes = ${wanted > 0 && wanted < wholeAnswerBytes ? wanted : wholeAnswerBytes}`;
}

/** The engine's job for a request, its lane and the format its answer will have. */
export function jobOf(options: RequestOptions, body: Buffer): { job: EngineJob; lane: Lane; format: string } {
  const { query, headers, method, analyst, id } = options;
  if (query.get('compress') === '1' || query.get('decompress') === '1')
    throw new BridgeError(48, 'NOT_IMPLEMENTED', 'compress and decompress are not supported; use gzip');
  const { statement, insert } = cutStatement(query.get('query') ?? '', body);
  const format = header(headers, 'x-clickhouse-format') ?? query.get('default_format') ?? 'TabSeparated';
  // What has no answer is tried as a stream only where it may be two statements: the engine refuses them there.
  const streamed = isReading(statement) ? isStreamable(statement, format) : statement.includes(';');
  const isParameter = ([name]: [string, string]): boolean => name.startsWith('param_');
  const parameters = new Map([...query].filter(isParameter));
  const settings = new Map([...query].filter((one) => !isParameter(one) && !exchangeParameters.has(one[0])));
  if (analyst) for (const value of parameters.values()) checkParameterValue(value);
  const assignments = [
    ...(analyst ? analystAssignments(settings) : [serviceMemory, ...pairs(settings)]),
    // Bound by the engine on its own session, in its own escaping; never pasted into SQL.
    ...pairs(parameters),
    ...(streamed || !isReading(statement) ? [] : [answerBound(query)]),
  ];
  const job: EngineJob = {
    ...{ id, assignments, statement, format, streamed, insert },
    database: databaseOf(options),
    readonly: analyst ? 1 : method === 'POST' ? 0 : 2,
    limitMs: analyst ? 1000 * cappedValue(settings, 'max_execution_time', analystSeconds) : null,
  };
  return { job, lane: laneOf(statement, analyst), format: answerFormat(statement, format) };
}
