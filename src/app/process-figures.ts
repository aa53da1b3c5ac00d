/** The figures of a process, and of the deployment as it sees it; docs/operations.md has them in a table. */

import type { StallCounts, WatchedConsumer } from '../jobs/consumer.js';
import type { Figures } from '../services/read/figures.js';
import type { AnswerTally } from '../services/record/record-attempts.js';
import { createJournal } from '../store/outbox/journal.js';
import type { Outbox } from '../store/outbox/outbox.js';
import type { Engine } from './engine.js';
import { serverProbes } from './health.js';

/** What a process knows of the answers that it takes. */
export function addAnswerFigures(
  figures: Figures,
  { compute }: Pick<Engine, 'compute'>,
  tally: AnswerTally,
): void {
  figures.add({
    name: 'answers_total',
    help: 'Events that were judged, by what became of them',
    type: 'counter',
    read: () => Object.entries(tally).map(([outcome, value]) => ({ value, labels: { outcome } })),
  });
  figures.add({
    name: 'lanes_waiting',
    help: 'Requests with answers that wait for a worker thread',
    type: 'gauge',
    read: compute.waiting,
  });
  figures.add({
    name: 'worker_threads',
    help: 'Threads that count answers and compute forecasts',
    type: 'gauge',
    read: compute.threads,
  });
}

/** What is the same whichever process is asked; of several on a host one tells it. */
export function addDeploymentFigures(figures: Figures, engine: Engine, outbox: Outbox): void {
  const probes = serverProbes(engine);
  const journal = createJournal(engine.redis, engine.partitions);
  const pipelineFacts = together(outbox.facts);
  const journalFacts = together(journal.facts);
  const gauge = (name: string, help: string, read: () => Promise<number>) =>
    figures.add({ name, help, type: 'gauge', read });
  gauge('redis_up', '1 when Redis answers, else 0', async () => Number((await probes.redis()) === null));
  gauge('clickhouse_up', '1 when ClickHouse answers, else 0', async () =>
    Number((await probes.clickhouse()) === null),
  );
  const ofPipeline = [
    ['outbox_length', 'Answers that are not in ClickHouse yet', 'outboxLength'],
    ['erasures_due', 'Learners to be erased whose rows are on their way out of ClickHouse', 'erasuresDue'],
    [
      'oldest_pending_seconds',
      'Age of the oldest answer that is not in ClickHouse yet',
      'oldestPendingSeconds',
    ],
  ] as const;
  for (const [name, help, fact] of ofPipeline) gauge(name, help, async () => (await pipelineFacts())[fact]);
  gauge(
    'journal_length',
    'Goals, catalogue changes and forecasts that are not in ClickHouse yet',
    async () => (await journalFacts()).journalLength,
  );
  figures.add({
    name: 'parked_rows',
    help: 'Rows that were put aside because ClickHouse refuses their content',
    type: 'gauge',
    read: async () => {
      const [attempts, others] = await Promise.all([pipelineFacts(), journalFacts()]);
      return [
        { value: attempts.parked, labels: { of: 'attempts' } },
        { value: others.parked, labels: { of: 'journal' } },
      ];
    },
  });
}

/** Of the embedded server. */
export function addClickhouseEnds(figures: Figures, ends: Readonly<Record<string, number>>): void {
  figures.add({
    name: 'clickhouse_restarts_total',
    help: 'How often the embedded ClickHouse was started again, by why it ended',
    type: 'counter',
    read: () => Object.entries(ends).map(([reason, value]) => ({ value, labels: { reason } })),
  });
}

/** What moves by itself in a process, by the name that labels have. */
export type Consumers = Readonly<Record<string, Pick<WatchedConsumer, 'stalled' | 'counts'>>>;

export function addStallFigures(figures: Figures, consumers: Consumers): void {
  const samples = (of: keyof StallCounts) =>
    Object.entries(consumers).map(([consumer, { counts }]) => ({
      value: counts()[of],
      labels: { consumer },
    }));
  figures.add({
    name: 'stalls_total',
    help: 'How often a consumer did not move for 20 s with work waiting',
    type: 'counter',
    read: () => samples('stalls'),
  });
  figures.add({
    name: 'restarts_total',
    help: 'How often a consumer that did not move was begun anew',
    type: 'counter',
    read: () => samples('restarts'),
  });
}

/** All who ask while an answer is under way get that one. */
function together<Value>(ask: () => Promise<Value>): () => Promise<Value> {
  let asked: Promise<Value> | null = null;
  return () => {
    asked ??= ask().finally(() => {
      asked = null;
    });
    return asked;
  };
}
