/** The state of an import: what it counts with, where it stands, and that nobody else does the same. */

import { startPipeline } from '../app/consumers.js';
import { connectState, type Engine, startEngine } from '../app/engine.js';
import { prepareSchema } from '../app/schema.js';
import { joinOrStart } from '../embedded/servers.js';
import { StartError } from '../lifecycle.js';
import type { ImportRecord, ImportStore } from '../services/import/ports.js';
import { createImportStore, importLockKey } from '../store/learners/import-store.js';
import type { Outbox } from '../store/outbox/outbox.js';
import type { CommandContext } from './command.js';
import type { ImportArguments } from './import-options.js';
import { type ProcessLock, takeProcessLock } from './process-lock.js';

export interface ImportRun {
  readonly engine: Engine;
  readonly outbox: Outbox;
  readonly store: ImportStore;
  readonly lock: ProcessLock;
  /** Hash of the file and of what changes its meaning. */
  readonly content: string;
  readonly record: ImportRecord;
}

/**
 * Joins or starts the servers and finds out where to begin. The pipeline runs here too, for rows must reach
 * ClickHouse also where no service runs; beside one, both take their share of its jobs.
 *
 * @throws StartError for a file that was imported before, or is being imported now
 */
export async function beginImport(
  { config, logger, closers }: CommandContext,
  args: ImportArguments,
  content: string,
): Promise<ImportRun> {
  const endpoints = await joinOrStart(config, logger, closers);
  const redis = await connectState(endpoints, config, logger, closers);
  const engine = await startEngine(redis, endpoints, config, logger, closers);
  const blocked = engine.blocked();
  if (blocked !== null) throw new StartError(`Nothing can be imported now: ${blocked}`);
  const store = createImportStore(engine.redis, engine.partitions);
  // Two imports at once would still count nothing twice (feeder.ts), but the one that ends first forgets the marks.
  const inUse = 'This file is being imported by another process right now';
  const lock = await takeProcessLock(redis, importLockKey(content), inUse, { logger, closers });
  const record = await openRecord(store, content, args);
  await prepareSchema(endpoints, logger, closers);
  startPipeline(engine);
  return { engine, outbox: engine.outbox, store, lock, content, record };
}

const idCharacters = 32;

async function openRecord(store: ImportStore, content: string, args: ImportArguments): Promise<ImportRecord> {
  const found = await store.find(content);
  if (found !== null && found.finishedAt === null) return found;
  if (found !== null && !args.again) throw importedBefore(found, args);
  const run = (found?.run ?? 0) + 1;
  const id = `${content.slice(0, idCharacters)}.${run}`;
  const record = { id, run, line: 0, startedAt: Date.now(), finishedAt: null };
  await store.put(content, record);
  return record;
}

function importedBefore({ finishedAt }: ImportRecord, { file, tenant }: ImportArguments): StartError {
  const when = new Date(finishedAt ?? 0).toISOString();
  return new StartError(
    `${file} was imported for tenant ${tenant} before (${when}); --again counts all its rows once more`,
  );
}
