import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import type { AnalystLimits } from '../../contracts/settings/analyst-limits.js';
import { checkParameterValue } from './analyst-access.js';
import { buildAnalystAssignments, computeAnalystSeconds } from './analyst-settings.js';
import { BridgeError, rejectAccess } from './errors.js';
import type { EngineJob, QueryLane, RowInsert } from './query-lanes.js';
import { findLeadingWord, findResultFormat, formatSetting, parseInsertHead } from './sql.js';
import { findStreamFormat, hasNoRows } from './stream-formats.js';

const serviceMemory = 'max_memory_usage = 4000000000';

/** Reads have no priority: some take minutes, and analysts would wait. */
const writePriority = 'priority = 1';

const formatPairs = (settings: ReadonlyMap<string, string>): string[] =>
  Array.from(settings, ([name, value]) => formatSetting(name, value));

interface RequestOptions {
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly method: string;
  readonly pathDatabase: string | null;
  readonly defaultDatabase: string;
  /** Null: the service. */
  readonly limits: AnalystLimits | null;
  readonly id: string;
}

/** Parameters of HTTP, not of the engine. */
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
const isReading = (statement: string): boolean => readingWords.has(findLeadingWord(statement));

/** Selects the queue. Permissions do not depend on it. */
export function selectLane(statement: string, isAnalyst: boolean): QueryLane {
  if (isAnalyst) return 'analyst';
  return isReading(statement) ? 'read' : 'write';
}

const headBytes = 64 * 1024;

/** Rows in the body may follow a statement in the URL or in the body. */
function splitStatement(query: string, body: Buffer): { statement: string; insert: RowInsert | null } {
  const isInUrl = query.trim() !== '';
  const text = isInUrl ? query : body.subarray(0, headBytes).toString('utf8');
  const head = body.length > 0 ? parseInsertHead(text) : null;
  if (head === null) {
    const bytes = isInUrl ? Buffer.concat([Buffer.from(`${query}\n`), body]) : body;
    const statement = bytes.toString('utf8').trim();
    if (statement === '') throw new BridgeError(62, 'SYNTAX_ERROR', 'Empty query');
    if (!isUtf8(bytes)) throw new BridgeError(62, 'SYNTAX_ERROR', 'The statement is not valid UTF-8');
    return { statement, insert: null };
  }
  const { into, format, rowsStart } = head;
  const statementBytes = Buffer.from(text.slice(0, rowsStart));
  const rows = isInUrl
    ? Buffer.concat([Buffer.from(text.slice(rowsStart)), body])
    : body.subarray(statementBytes.length);
  return { statement: statementBytes.toString(), insert: { into, format, rows } };
}

/** Clients send `default` if no database is set: for an analyst, it means the service's database. */
function resolveDatabase(options: RequestOptions): string {
  const { query, headers, pathDatabase } = options;
  const isAnalyst = options.limits !== null;
  const requested = query.get('database') ?? readHeader(headers, 'x-clickhouse-database') ?? pathDatabase;
  // In `system`, the check would miss the tables behind unqualified names.
  if (isAnalyst && requested === 'system') rejectAccess('the database system');
  return requested === null || (isAnalyst && requested === 'default') ? options.defaultDatabase : requested;
}

function readHeader(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : undefined;
}

/** Engine bytes of a result that is not streamed. Its text may be a few times as long. */
const maxWholeBytes = 64_000_000;

/** Analysts can only lower it. */
function formatResultLimit(query: URLSearchParams, isAnalyst: boolean): string {
  const requested = Math.floor(Number(query.get('max_result_bytes') ?? 0));
  const isAccepted = requested > 0 && (!isAnalyst || requested < maxWholeBytes);
  return `max_result_bytes = ${isAccepted ? requested : maxWholeBytes}`;
}

export function buildJob(
  options: RequestOptions,
  body: Buffer,
): { job: EngineJob; lane: QueryLane; format: string } {
  const { query, headers, method, limits, id } = options;
  if (query.get('compress') === '1' || query.get('decompress') === '1')
    throw new BridgeError(48, 'NOT_IMPLEMENTED', 'compress and decompress are not supported; use gzip');
  const { statement, insert } = splitStatement(query.get('query') ?? '', body);
  const format = readHeader(headers, 'x-clickhouse-format') ?? query.get('default_format') ?? 'TabSeparated';
  // Statements without a result are streamed only if there may be two: a stream rejects the second.
  const multiStatementFormat = statement.includes(';') ? 'tabseparated' : null;
  const settingNames = [...query.keys()].join(' ');
  const streamFormat = isReading(statement)
    ? findStreamFormat(statement, format, settingNames)
    : multiStatementFormat;
  const isWhole = streamFormat === null && isReading(statement);
  const isParameter = ([name]: [string, string]): boolean => name.startsWith('param_');
  const parameters = new Map([...query].filter(isParameter));
  const settings = new Map([...query].filter((one) => !isParameter(one) && !exchangeParameters.has(one[0])));
  if (limits !== null) for (const value of parameters.values()) checkParameterValue(value);
  const lane = selectLane(statement, limits !== null);
  const assignments = [
    ...(lane === 'write' ? [writePriority] : []),
    ...(limits === null
      ? [serviceMemory, ...formatPairs(settings)]
      : buildAnalystAssignments(settings, limits)),
    // The engine binds and escapes parameters.
    ...formatPairs(parameters),
    ...(isWhole && !hasNoRows(statement, format) ? [formatResultLimit(query, limits !== null)] : []),
  ];
  const job: EngineJob = {
    ...{ id, assignments, statement, format, streamFormat, insert },
    database: resolveDatabase(options),
    readonly: limits !== null ? 1 : method === 'POST' ? 0 : 2,
    limitMs: limits === null ? null : 1000 * computeAnalystSeconds(settings, limits),
  };
  return { job, lane, format: findResultFormat(statement, format) };
}
