/** A pipeline that is replaced where it does not move: new connections, a new worker, and its jobs looked after. */
import { drainShards } from '../contracts/jobs.js';
import { connectQueues } from './connection.js';
import { createDrainQueue, freeShard } from './drain-queue.js';
import { type ProgressWatch, watchProgress } from './progress-watch.js';
import { type PipelineOptions, startPipeline, within } from './worker.js';

export interface WatchedPipeline extends Pick<ProgressWatch, 'stalled' | 'counts'> {
  close(): Promise<void>;
}

/** How long the queue may take to tell of its jobs and to free them. */
const freeMs = 5000;

export function startWatchedPipeline(options: Omit<PipelineOptions, 'onAttempt'>): WatchedPipeline {
  const { outbox, partitions, logger } = options;
  const all = Array.from({ length: partitions }, (_, partition) => partition);
  const start = () => startPipeline({ ...options, onAttempt: () => watch.note() });
  let current = start();
  let closing: Promise<void> | undefined;

  async function waiting(): Promise<string | null> {
    const backlog = await outbox.backlog(all);
    const heads = backlog.map(({ head, length, due }) => (length + due > 0 ? `${head} ${due}` : null));
    return heads.every((head) => head === null) ? null : heads.join();
  }

  async function restart(): Promise<void> {
    await current.abandon();
    await within(freeShards(options), freeMs);
    current = start();
  }

  const watch = watchProgress({ name: 'the pipeline', waiting, restart, logger });

  async function close(): Promise<void> {
    await watch.close();
    await current.close();
  }

  return {
    stalled: watch.stalled,
    counts: watch.counts,
    close: () => {
      closing ??= close();
      return closing;
    },
  };
}

async function freeShards({ redisUrl, logger }: Pick<PipelineOptions, 'redisUrl' | 'logger'>): Promise<void> {
  let done = false;
  const connection = connectQueues(redisUrl, logger, () => done);
  const queue = createDrainQueue(connection);
  queue.on('error', (error) => logger.debug({ err: error }, 'drain queue'));
  const end = setTimeout(() => connection.disconnect(), freeMs);
  try {
    for (let shard = 0; shard < drainShards; shard++) await freeShard(queue, connection, shard);
  } catch (error) {
    logger.warn({ err: error }, 'the jobs of the pipeline could not be looked after');
  } finally {
    done = true;
    clearTimeout(end);
    connection.disconnect();
    await within(queue.close(), freeMs);
  }
}
