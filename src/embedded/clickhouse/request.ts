import type { IncomingHttpHeaders } from 'node:http';
import { checkParameterValue } from './analyst-guard.js';
import { BridgeError, notAllowed } from './errors.js';
import type { Lane } from './lanes.js';
import type { EngineJob, RowInsert } from './messages.js';
import { analystAssignments, analystLimitMs, parameterAssignments, serviceAssignments } from './settings.js';
import {
  answerFormat,
  type InsertHead,
  insertFormat,
  isStreamable,
  leadingWord,
  parseInsertHead,
} from './sql.js';

/** One request's say about how to run its statement. */
export interface RequestOptions {
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly method: string;
  /** From the URL's path; null for `/`. */
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

function header(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : undefined;
}

const isInsert = (text: string): boolean => leadingWord(text) === 'INSERT';

const readingWords: ReadonlySet<string> = new Set(
  'SELECT WITH FROM SHOW DESCRIBE DESC EXISTS EXPLAIN ('.split(' '),
);
const isReading = (statement: string): boolean => readingWords.has(leadingWord(statement));

/** Statements without an answer: the engine parses them only to refuse to stream it, as it does where there are two. */
const answerlessWords: ReadonlySet<string> = new Set(
  'ALTER CREATE DELETE DROP INSERT OPTIMIZE SYSTEM TRUNCATE'.split(' '),
);

/** Only about who waits for whom; what a request may do is not decided here. */
export function laneOf(statement: string, analyst: boolean): Lane {
  if (analyst) return 'analyst';
  return isReading(statement) ? 'read' : 'write';
}

/** Where a statement with rows behind it is cut. */
interface CutStatement {
  readonly text: string;
  readonly insert: RowInsert | null;
  readonly settings: readonly string[];
}

/** The head of a statement is looked for in so many bytes of the body. */
const headBytes = 64 * 1024;

function rowInsert(head: InsertHead, rows: Uint8Array): RowInsert {
  return { table: head.table, columns: head.columns, format: insertFormat(head.format), rows };
}

function cutParameter(query: string, body: Buffer): CutStatement {
  const head = isInsert(query) && body.length > 0 ? parseInsertHead(query) : null;
  if (head === null) return wholeText(Buffer.concat([Buffer.from(`${query}\n`), body]));
  const first = Buffer.from(query.slice(head.rowsAt));
  const rows = first.length === 0 ? body : Buffer.concat([first, body]);
  return { text: query, insert: rowInsert(head, rows), settings: head.settings };
}

function cutBody(body: Buffer): CutStatement {
  const start = body.subarray(0, headBytes).toString('utf8');
  const head = isInsert(start) ? parseInsertHead(start) : null;
  if (head === null) return wholeText(body);
  const headLength = Buffer.byteLength(start.slice(0, head.rowsAt));
  return { text: start, insert: rowInsert(head, body.subarray(headLength)), settings: head.settings };
}

function wholeText(bytes: Buffer): CutStatement {
  const text = bytes.toString('utf8').trim();
  if (text === '') throw new BridgeError(62, 'SYNTAX_ERROR', 'Empty query');
  const format = isInsert(text) ? /^[^']*\bFORMAT\s+(\w+)/i.exec(text.slice(0, headBytes))?.[1] : undefined;
  if (format !== undefined && format.toLowerCase() !== 'values') insertFormat(format);
  return { text, insert: null, settings: [] };
}

function named(query: URLSearchParams, keep: (name: string) => string | null): Map<string, string> {
  const found = new Map<string, string>();
  for (const [key, value] of query) {
    const name = keep(key);
    if (name !== null) found.set(name, value);
  }
  return found;
}

const settingName = (key: string): string | null =>
  key.startsWith('param_') || exchangeParameters.has(key) ? null : key;
const parameterName = (key: string): string | null => (key.startsWith('param_') ? key.slice(6) : null);

function refuseNativeCompression(query: URLSearchParams): void {
  if (query.get('compress') === '1' || query.get('decompress') === '1') {
    throw new BridgeError(48, 'NOT_IMPLEMENTED', 'compress and decompress are not supported; use gzip');
  }
}

function assignments(
  options: RequestOptions,
  settings: ReadonlyMap<string, string>,
  clause: readonly string[],
): string[] {
  const parameters = named(options.query, parameterName);
  if (options.analyst) for (const value of parameters.values()) checkParameterValue(value);
  const own = options.analyst ? analystAssignments(settings) : [...serviceAssignments(settings), ...clause];
  return [...own, ...parameterAssignments(parameters)];
}

function readonlyLevel(options: RequestOptions): 0 | 1 | 2 {
  if (options.analyst) return 1;
  return options.method === 'POST' ? 0 : 2;
}

/** Clients name `default` when they were told nothing; for an analyst that is the service's database. */
function databaseOf(options: RequestOptions): string {
  const named =
    options.query.get('database') ?? header(options.headers, 'x-clickhouse-database') ?? options.pathDatabase;
  // There every name without a database would be one of the engine's own, and pass the guard.
  if (options.analyst && named === 'system') notAllowed('the database system');
  return named === null || (options.analyst && named === 'default') ? options.defaultDatabase : named;
}

/** Bound on an answer that is made as a whole, in the engine's own bytes; its text may be a few times that. */
const wholeAnswerBytes = 64_000_000;

function mayStream(statement: string, fallback: string): boolean {
  if (answerlessWords.has(leadingWord(statement))) return statement.includes(';');
  return !isReading(statement) || isStreamable(statement, fallback);
}

/** Whole answers get the bound, or the request's own where that is lower. */
function answerBound(options: RequestOptions): string {
  const wanted = Number(options.query.get('max_result_bytes') ?? 0);
  return `max_result_bytes = ${wanted > 0 && wanted < wholeAnswerBytes ? Math.floor(wanted) : wholeAnswerBytes}`;
}

/** The engine's job for a request, its lane and the format its answer will have. */
export function jobOf(options: RequestOptions, body: Buffer): { job: EngineJob; lane: Lane; format: string } {
  refuseNativeCompression(options.query);
  const query = options.query.get('query') ?? '';
  const cut = query.trim() === '' ? cutBody(body) : cutParameter(query, body);
  const { headers } = options;
  const fallback =
    header(headers, 'x-clickhouse-format') ?? options.query.get('default_format') ?? 'TabSeparated';
  const streamed = cut.insert !== null || mayStream(cut.text, fallback);
  const settings = named(options.query, settingName);
  const set = assignments(options, settings, cut.settings);
  const job: EngineJob = {
    id: options.id,
    database: databaseOf(options),
    assignments: streamed || !isReading(cut.text) ? set : [...set, answerBound(options)],
    readonly: readonlyLevel(options),
    statement: cut.text,
    limitMs: options.analyst ? analystLimitMs(settings) : null,
    format: fallback,
    streamed,
    insert: cut.insert,
  };
  return { job, lane: laneOf(cut.text, options.analyst), format: answerFormat(cut.text, fallback) };
}
