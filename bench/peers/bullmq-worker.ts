import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '@clickhouse/client';
import { Worker } from 'bullmq';
import { Redis } from 'ioredis';
import type { PeerSettings } from '../targets/peers.js';
import type { AnswerEvent } from './fastify-app.js';
import type { TracedAnswer } from './tracing.js';

const { redisUrl, clickhouseUrl }: PeerSettings = JSON.parse(process.argv[2] as string);
const maxConcurrentJobs = 1000;
const batchWaitMs = 100;
const clickhouse = createClient({ url: clickhouseUrl });

await clickhouse.command({
  query: `CREATE TABLE IF NOT EXISTS answers (user_id String, skill_id LowCardinality(String), is_correct Bool,
    event_id String, mastery_before Float64, mastery_after Float64, received_at DateTime64(3) DEFAULT now64(3))
    ENGINE = MergeTree ORDER BY (user_id, received_at)`,
});

/** Jobs end after their insert. */
interface Block {
  readonly rows: object[];
  readonly stored: Promise<unknown>;
}

let currentBlock: Block | null = null;

function createBlock(): Block {
  const rows: object[] = [];
  const stored = sleep(batchWaitMs).then(() => {
    currentBlock = null;
    return clickhouse.insert({ table: 'answers', values: rows, format: 'JSONEachRow' });
  });
  return { rows, stored };
}

type QueuedAnswer = TracedAnswer & { readonly event: AnswerEvent };

function toRow({ event, masteryBefore, after }: QueuedAnswer): object {
  const { user_id, skill_id, is_correct, event_id = '' } = event;
  return {
    user_id,
    skill_id,
    is_correct,
    event_id,
    mastery_before: masteryBefore,
    mastery_after: after.mastery,
  };
}

const connection = new Redis(redisUrl, { maxRetriesPerRequest: null });
new Worker<QueuedAnswer>(
  'answers',
  async ({ data }) => {
    currentBlock ??= createBlock();
    currentBlock.rows.push(toRow(data));
    await currentBlock.stored;
  },
  { connection, concurrency: maxConcurrentJobs },
);
process.stdout.write('ready\n');
