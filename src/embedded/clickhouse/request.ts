import type { IncomingHttpHeaders } from 'node:http';
import { checkParameterValue } from './analyst-guard.js';
import { BridgeError, notAllowed } from './errors.js';
import type { Lane } from './lanes.js';
import type { EngineJob, RowInsert } from './messages.js';
import { analystAssignments, analystLimitMs, parameterAssignments, serviceAssignments } from './settings.js';
import { answerFormat, insertFormat, isStreamable, leadingWord, parseInsertHead } from './sql.js';

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

/** The statement stands in the URL, with rows in the body, or both in the body. */
function cutStatement(query: string, body: Buffer): CutStatement {
  const isInUrl = query.trim() !== '';
  const text = isInUrl ? query : body.subarray(0, headBytes).toString('utf8');
  const head = isInsert(text) && body.length > 0 ? parseInsertHead(text) : null;
  if (head === null) return wholeText(isInUrl ? Buffer.concat([Buffer.from(`${query}\n`), body]) : body);
  const { table, columns, settings, rowsAt } = head;
  const format = insertFormat(head.format);
  const inUrl = Buffer.from(isInUrl ? text.slice(rowsAt) : '');
  const inBody = isInUrl ? body : body.subarray(Buffer.byteLength(text.slice(0, rowsAt)));
  const rows = inUrl.length === 0 ? inBody : Buffer.concat([inUrl, inBody]);
  return { text, insert: { table, columns, format, rows }, settings };
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

/** Clients name `default` where nothing was set; for an analyst that is the service's database. */
function databaseOf(options: RequestOptions): string {
  const { query, headers, pathDatabase, analyst } = options;
  const wanted = query.get('database') ?? header(headers, 'x-clickhouse-database') ?? pathDatabase;
  // There every name without a database would be one of the engine's own, and pass the guard.
  if (analyst && wanted === 'system') notAllowed('the database system');
  return wanted === null || (analyst && wanted === 'default') ? options.defaultDatabase : wanted;
}

function mayStream(statement: string, fallback: string): boolean {
  if (answerlessWords.has(leadingWord(statement))) return statement.includes(';');
  return !isReading(statement) || isStreamable(statement, fallback);
}

/** Bound on an answer that is made as a whole, in the engine's own bytes; its text may be a few times that. */
const wholeAnswerBytes = 64_000_000;

/** Whole answers get the bound, or the request's own where that is lower. */
function answerBound(query: URLSearchParams): string {
  const wanted = Math.floor(Number(query.get('max_result_bytes') ?? 0));
  return `max_result_bytes = ${wanted > 0 && wanted < wholeAnswerBytes ? wanted : wholeAnswerBytes}`;
}

/** The engine's job for a request, its lane and the format its answer will have. */
export function jobOf(options: RequestOptions, body: Buffer): { job: EngineJob; lane: Lane; format: string } {
  const { query, headers, method, analyst, id } = options;
  if (query.get('compress') === '1' || query.get('decompress') === '1')
    throw new BridgeError(48, 'NOT_IMPLEMENTED', 'compress and decompress are not supported; use gzip');
  const { text: statement, insert, settings: clause } = cutStatement(query.get('query') ?? '', body);
  const format = header(headers, 'x-clickhouse-format') ?? query.get('default_format') ?? 'TabSeparated';
  const streamed = insert !== null || mayStream(statement, format);
  const settings = named(query, settingName);
  const parameters = named(query, parameterName);
  if (analyst) for (const value of parameters.values()) checkParameterValue(value);
  const assignments = [
    ...(analyst ? analystAssignments(settings) : [...serviceAssignments(settings), ...clause]),
    ...parameterAssignments(parameters),
    ...(streamed || !isReading(statement) ? [] : [answerBound(query)]),
  ];
  const job: EngineJob = {
    ...{ id, assignments, statement, format, streamed, insert },
    database: databaseOf(options),
    readonly: analyst ? 1 : method === 'POST' ? 0 : 2,
    limitMs: analyst ? analystLimitMs(settings) : null,
  };
  return { job, lane: laneOf(statement, analyst), format: answerFormat(statement, format) };
}
