import { createHash } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { type ChdbQueryStream, Session } from 'chdb';
import { checkAnalystStatement, dearAssignments, takeAnalystRole } from './analyst.js';
import { failureOf, queryCancelled } from './errors.js';
import type { EngineJob, FromThread, RowInsert, ToThread, Written } from './lanes.js';
import { literal, quotedName } from './sql.js';
import { jointOf } from './streaming.js';

/*
 * Runs one query at a time. A new session per query (0.4 ms) drops its settings, parameters and database.
 * Starting a streamed query blocks the thread: the engine then runs scalar subqueries.
 */
const port = parentPort;
if (port === null) throw new Error('engine-thread runs as a worker thread');
const dataDir = String(workerData);

/** One insert runs at a time and overwrites the file of a killed process. */
const rowsFile = join(dataDir, `insert-${createHash('sha256').update(dataDir).digest('hex').slice(0, 16)}`);
/** INFILE reads these characters as a pattern, in which `?` is any character. */
const rowsPattern = literal(rowsFile.replace(/[*?{}]/g, '?'));

let isPathFound = false;
let cancelled = false;
let answer: (wanted: boolean) => void = () => undefined;
let tableFunctions: ReadonlySet<string> | null = null;

const send = (message: FromThread, moved: ArrayBuffer[] = []): void => port.postMessage(message, moved);

async function knownTableFunctions(session: Session): Promise<ReadonlySet<string>> {
  if (tableFunctions !== null) return tableFunctions;
  const query = 'SELECT lower(name) FROM system.table_functions';
  const result = await session.queryAsync(query, { format: 'TSV' });
  tableFunctions = new Set(result.text().trim().split('\n'));
  return tableFunctions;
}

/** A second statement is a syntax error, except after the rows of VALUES. */
async function printed(session: Session, statement: string): Promise<string> {
  const sql = `SELECT formatQuerySingleLine(${literal(statement)})`;
  try {
    return (await session.queryAsync(sql, { format: 'TSVRaw' })).text().trim();
  } catch (error) {
    const text = failureOf(error).body.trim();
    throw new Error(text.replace(/: In scope SELECT formatQuerySingleLine\([\s\S]*(?= \(\w+\)$)/, ''));
  }
}

async function runnable(session: Session, job: EngineJob): Promise<string> {
  if (job.readonly === 1)
    return checkAnalystStatement(await printed(session, job.statement), await knownTableFunctions(session));
  // Unlike a stream, the call for a whole result runs a second statement. After INSERT … VALUES (…) the
  // parser misses it, but this account may run both.
  if (job.streamed === null && job.statement.includes(';')) await printed(session, job.statement);
  return job.statement;
}

/** Few calls, because each needs a pool thread. `readonly` comes last: nothing can be set after it. */
async function prepare(session: Session, job: EngineJob): Promise<string> {
  const settings = [...job.assignments, `log_comment = ${literal(job.id)}`];
  const steps = [`USE ${quotedName(job.database)}`, `SET ${settings.join(', ')}`];
  if (job.readonly === 2) steps.push('SET readonly = 2');
  await session.queryAsync(steps.join(';\n'));
  const statement = await runnable(session, job);
  if (job.readonly === 1) {
    const last = [...dearAssignments(statement), 'readonly = 1'];
    await session.queryAsync(`${takeAnalystRole};\nSET ${last.join(', ')}`);
  }
  return statement;
}

async function sendChunk(raw: Uint8Array): Promise<boolean> {
  const chunk = Uint8Array.from(raw);
  if (chunk.length === 0) return true;
  send({ chunk }, [chunk.buffer]);
  if (cancelled) return false;
  return new Promise((resolve) => {
    answer = resolve;
  });
}

/** @throws if interrupted: after a return, the result would look complete */
async function sendPart(part: Uint8Array): Promise<void> {
  if (cancelled || !(await sendChunk(part))) throw queryCancelled();
}

/** Uses a file: the engine splits rows after a statement into SQL tokens, which doubles the cost (26.7). */
async function insertRows(session: Session, { into, format, rows }: RowInsert): Promise<Written> {
  try {
    if (!isPathFound) await tryPath(session);
    await writeFile(rowsFile, rows, { mode: 0o600 });
    const { rowsRead, bytesRead } = await session.queryAsync(`${into} FROM INFILE ${rowsPattern} ${format}`);
    return { rows: rowsRead, bytes: bytesRead };
  } finally {
    await rm(rowsFile, { force: true });
  }
}

/** If no file matches the path, the engine inserts nothing and reports no error. */
async function tryPath(session: Session): Promise<void> {
  await writeFile(rowsFile, '1\n', { mode: 0o600 });
  const sql = `INSERT INTO FUNCTION null('n UInt8') FROM INFILE ${rowsPattern} FORMAT TSV`;
  if ((await session.queryAsync(sql)).rowsRead !== 1) throw new Error(`the engine does not find ${rowsFile}`);
  isPathFound = true;
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

async function runJob(session: Session, job: EngineJob): Promise<Written | null> {
  const statement = await prepare(session, job);
  const { insert, format, streamed } = job;
  if (cancelled) throw queryCancelled();
  if (insert !== null) return insertRows(session, insert);
  const stream = streamed === null ? null : openStream(session, statement, format);
  if (streamed === null || stream === null) {
    await sendChunk((await session.queryAsync(statement, { format })).bytes());
    return null;
  }
  const joint = jointOf(streamed);
  for await (const chunk of stream) await sendPart(joint.next(chunk.raw()));
  await sendPart(joint.end());
  return null;
}

async function resultOf(job: EngineJob): Promise<FromThread> {
  cancelled = false;
  const session = new Session(dataDir);
  try {
    return { written: await runJob(session, job) };
  } catch (error) {
    const failed = failureOf(error).body.trimEnd();
    return { failed: job.readonly === 1 ? failed.replaceAll(dataDir, '') : failed };
  } finally {
    session.close();
  }
}

port.on('message', async (message: ToThread) => {
  if (typeof message !== 'boolean') return send(await resultOf(message));
  if (!message) cancelled = true;
  answer(message);
});
send('loaded');
