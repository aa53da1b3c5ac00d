import { createHash } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { type ChdbQueryStream, Session } from 'chdb';
import { checkAnalystStatement, limitExpensiveBlocks, setAnalystRole } from './analyst-access.js';
import { createCancelledError, toFailure } from './errors.js';
import type { EngineJob, InsertSummary, RowInsert, ThreadCommand, ThreadMessage } from './query-lanes.js';
import { quoteLiteral, quoteName } from './sql.js';
import { createBlockJoiner } from './stream-formats.js';

/*
 * Runs one query at a time. A new session per query (0.4 ms) drops its settings, parameters and database.
 * Starting a streamed query blocks the thread: the engine then runs scalar subqueries.
 */
const port = parentPort;
if (port === null) throw new Error('engine-thread must run as a worker thread');
const dataDir = String(workerData);

/** One insert runs at a time and overwrites the file of a killed process. */
const rowsFile = join(dataDir, `insert-${createHash('sha256').update(dataDir).digest('hex').slice(0, 16)}`);
/** INFILE reads these characters as a pattern, in which `?` is any character. */
const rowsPattern = quoteLiteral(rowsFile.replace(/[*?{}]/g, '?'));

let isPathVerified = false;
let isCancelled = false;
let resolveChunk: (wanted: boolean) => void = () => undefined;
let tableFunctions: ReadonlySet<string> | null = null;

const send = (message: ThreadMessage, transfer: ArrayBuffer[] = []): void =>
  port.postMessage(message, transfer);

async function loadTableFunctions(session: Session): Promise<ReadonlySet<string>> {
  if (tableFunctions !== null) return tableFunctions;
  const query = 'SELECT lower(name) FROM system.table_functions';
  const result = await session.queryAsync(query, { format: 'TSV' });
  tableFunctions = new Set(result.text().trim().split('\n'));
  return tableFunctions;
}

/** A second statement is a syntax error, except after the rows of VALUES. */
async function formatStatement(session: Session, statement: string): Promise<string> {
  const sql = `SELECT formatQuerySingleLine(${quoteLiteral(statement)})`;
  try {
    return (await session.queryAsync(sql, { format: 'TSVRaw' })).text().trim();
  } catch (error) {
    const text = toFailure(error).body.trim();
    throw new Error(text.replace(/: In scope SELECT formatQuerySingleLine\([\s\S]*(?= \(\w+\)$)/, ''));
  }
}

async function toRunnable(session: Session, job: EngineJob): Promise<string> {
  if (job.readonly === 1)
    return checkAnalystStatement(
      await formatStatement(session, job.statement),
      await loadTableFunctions(session),
    );
  // Unlike a stream, the call for a whole result runs a second statement. After INSERT … VALUES (…) the
  // parser misses it, but this account may run both.
  if (job.streamFormat === null && job.statement.includes(';')) await formatStatement(session, job.statement);
  return job.statement;
}

/** Few calls, because each needs a pool thread. `readonly` comes last: nothing can be set after it. */
async function prepareSession(session: Session, job: EngineJob): Promise<string> {
  // First: settings of the request, such as `limit`, would change the results of the checks.
  const statement = await toRunnable(session, job);
  const settings = [...job.assignments, `log_comment = ${quoteLiteral(job.id)}`];
  const steps = [`USE ${quoteName(job.database)}`, `SET ${settings.join(', ')}`];
  if (job.readonly === 2) steps.push('SET readonly = 2');
  await session.queryAsync(steps.join(';\n'));
  if (job.readonly === 1) {
    const last = [...limitExpensiveBlocks(statement), 'readonly = 1'];
    await session.queryAsync(`${setAnalystRole};\nSET ${last.join(', ')}`);
  }
  return statement;
}

/** @returns whether to send the next chunk */
async function sendChunk(raw: Uint8Array): Promise<boolean> {
  const chunk = Uint8Array.from(raw);
  if (chunk.length === 0) return true;
  send({ chunk }, [chunk.buffer]);
  if (isCancelled) return false;
  return new Promise((resolve) => {
    resolveChunk = resolve;
  });
}

/** @throws if interrupted: after a return, the result would look complete */
async function sendPart(part: Uint8Array): Promise<void> {
  if (isCancelled || !(await sendChunk(part))) throw createCancelledError();
}

/** Uses a file: the engine splits rows after a statement into SQL tokens, which doubles the cost (26.7). */
async function insertRows(session: Session, { into, format, rows }: RowInsert): Promise<InsertSummary> {
  try {
    if (!isPathVerified) await verifyPath(session);
    await writeFile(rowsFile, rows, { mode: 0o600 });
    const { rowsRead, bytesRead } = await session.queryAsync(`${into} FROM INFILE ${rowsPattern} ${format}`);
    return { rows: rowsRead, bytes: bytesRead };
  } finally {
    await rm(rowsFile, { force: true });
  }
}

/** If no file matches the path, the engine inserts nothing and reports no error. */
async function verifyPath(session: Session): Promise<void> {
  await writeFile(rowsFile, '1\n', { mode: 0o600 });
  const sql = `INSERT INTO FUNCTION null('n UInt8') FROM INFILE ${rowsPattern} FORMAT TSV`;
  if ((await session.queryAsync(sql)).rowsRead !== 1) throw new Error(`the engine cannot find ${rowsFile}`);
  isPathVerified = true;
}

/** Null: a single statement other than SELECT. @throws Error for two statements */
function openStream(session: Session, statement: string, format: string): ChdbQueryStream | null {
  try {
    return session.queryStream(statement, { format });
  } catch (error) {
    if (error instanceof Error && error.message.includes('Streaming query is not supported')) return null;
    throw error;
  }
}

async function runJob(session: Session, job: EngineJob): Promise<InsertSummary | null> {
  const statement = await prepareSession(session, job);
  const { insert, format, streamFormat } = job;
  if (isCancelled) throw createCancelledError();
  if (insert !== null) return insertRows(session, insert);
  const stream = streamFormat === null ? null : openStream(session, statement, format);
  if (streamFormat === null || stream === null) {
    await sendChunk((await session.queryAsync(statement, { format })).bytes());
    return null;
  }
  const joiner = createBlockJoiner(streamFormat);
  for await (const chunk of stream) await sendPart(joiner.next(chunk.raw()));
  await sendPart(joiner.end());
  return null;
}

async function runInSession(job: EngineJob): Promise<ThreadMessage> {
  isCancelled = false;
  const session = new Session(dataDir);
  try {
    return { written: await runJob(session, job) };
  } catch (error) {
    const failed = toFailure(error).body.trimEnd();
    return { failed: job.readonly === 1 ? failed.replaceAll(dataDir, '') : failed };
  } finally {
    session.close();
  }
}

port.on('message', async (message: ThreadCommand) => {
  if (typeof message !== 'boolean') return send(await runInSession(message));
  if (!message) isCancelled = true;
  resolveChunk(message);
});
send('loaded');
