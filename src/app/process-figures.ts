/** The figures of a process, and of the deployment as it sees it; docs/operations.md has them in a table. */
import { singleFlight } from '../concurrency.js';
import type { StallCounts } from '../jobs/consumer.js';
import type { Figure, Figures } from '../services/read/figures.js';
import { serverProbes } from '../services/read/health.js';
import type { AnswerTally } from '../services/record/record-attempts.js';
import type { Consumers } from './consumers.js';
import type { Engine } from './engine.js';

/** [name, help, how it is read] */
type Row = readonly [Figure['name'], Figure['help'], Figure['read']];

const addAll = (figures: Figures, type: Figure['type'], rows: readonly Row[]): void => {
  for (const [name, help, read] of rows) figures.add({ name, help, type, read });
};

/** Values by a label: each name and what it counts. */
const byLabel = (label: string, values: Readonly<Record<string, number>>) =>
  Object.entries(values).map(([name, value]) => ({ value, labels: { [label]: name } }));

/** What a process knows of the answers that it takes. */
export function addAnswerFigures(
  figures: Figures,
  { compute }: Pick<Engine, 'compute'>,
  tally: AnswerTally,
): void {
  addAll(figures, 'counter', [
    ['answers_total', 'Events that were judged, by what became of them', () => byLabel('outcome', tally)],
  ]);
  addAll(figures, 'gauge', [
    ['lanes_waiting', 'Requests with answers that wait for a worker thread', compute.waiting],
    ['worker_threads', 'Threads that count answers and compute forecasts', compute.threads],
  ]);
}

/** What is the same whichever process is asked; of several on a host one reports it. */
export function addDeploymentFigures(figures: Figures, engine: Engine): void {
  const { redis, clickhouse } = serverProbes(engine);
  const outbox = singleFlight(engine.outbox.facts);
  const journal = singleFlight(engine.journal.facts);
  const isUp = (probe: () => Promise<string | null>) => async () => Number((await probe()) === null);
  addAll(figures, 'gauge', [
    ['redis_up', '1 when Redis answers, else 0', isUp(redis)],
    ['clickhouse_up', '1 when ClickHouse answers, else 0', isUp(clickhouse)],
    ['outbox_length', 'Answers that are not in ClickHouse yet', async () => (await outbox()).outboxLength],
    [
      'erasures_due',
      'Learners to be erased whose rows are on their way out of ClickHouse',
      async () => (await outbox()).erasuresDue,
    ],
    [
      'oldest_pending_seconds',
      'Age of the oldest answer that is not in ClickHouse yet',
      async () => (await outbox()).oldestPendingSeconds,
    ],
    [
      'journal_length',
      'Goals, catalogue changes and forecasts that are not in ClickHouse yet',
      async () => (await journal()).journalLength,
    ],
    [
      'parked_rows',
      'Rows that were put aside because ClickHouse refuses their content',
      async () => byLabel('of', { attempts: (await outbox()).parked, journal: (await journal()).parked }),
    ],
  ]);
}

/** Of the embedded server. */
export function addClickhouseEnds(figures: Figures, ends: Readonly<Record<string, number>>): void {
  const help = 'How often the embedded ClickHouse was started again, by why it ended';
  addAll(figures, 'counter', [['clickhouse_restarts_total', help, () => byLabel('reason', ends)]]);
}

export function addStallFigures(figures: Figures, consumers: Consumers): void {
  const of = (count: keyof StallCounts) => () =>
    Object.entries(consumers).map(([consumer, { counts }]) => ({
      value: counts()[count],
      labels: { consumer },
    }));
  addAll(figures, 'counter', [
    ['stalls_total', 'How often a consumer did not move for 20 s with work waiting', of('stalls')],
    ['restarts_total', 'How often a consumer that did not move was restarted', of('restarts')],
  ]);
}
