/** One job per endpoint with due messages, added again while messages are due. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Job } from 'bullmq';
import { type DeliveryJobData, deliveryJobId, deliveryQueueName } from '../contracts/job-data.js';
import { ApiError } from '../errors.js';
import type { Logger } from '../logger.js';
import type { Deliver } from '../services/webhooks/deliver.js';
import type { HandOut } from '../services/webhooks/hand-out.js';
import type { EndpointPlace } from '../store/webhooks/messages.js';
import { type Consumer, freeJobs, openQueue, startConsumer } from './consumer.js';

/** Another worker takes over the job of a dead worker within the sum of both. */
const lockMs = 10_000;
const stalledCheckMs = 5000;
const sweepMs = 1000;
/** Leaves CPU time for requests between pages of events. */
const pageRestMs = 250;
const maxArmed = 1000;
/** An endpoint that hangs blocks one of these slots for 15 s. */
export const endpointsTogether = 100;
/** Endpoints that are due for longer count in the stall check. */
const overdueMs = 5000;
const namedOverdue = 20;

export interface DeliveriesOptions {
  readonly redisUrl: string;
  readonly handOut: HandOut;
  readonly endpointsDue: (now: number, atMost: number) => Promise<readonly EndpointPlace[]>;
  readonly deliver: Deliver;
  readonly logger: Logger;
}

export function startDeliveries(options: DeliveriesOptions): Consumer {
  const { redisUrl, handOut, endpointsDue, deliver, logger } = options;
  return startConsumer<DeliveryJobData, void>({
    ...{ name: 'the delivery of webhooks', redisUrl, logger },
    openQueue: (connection) => openQueue(deliveryQueueName, connection, { attempts: 1 }),
    worker: { concurrency: endpointsTogether, lockDuration: lockMs, stalledInterval: stalledCheckMs },
    enqueueMs: sweepMs,
    enqueueFailed: (err) => {
      if (err instanceof ApiError) logger.debug({ err }, 'webhooks wait for Redis');
      else logger.error({ err }, 'events cannot be handed to webhooks');
    },
    failed: (err, job) => logger.warn({ err, job: job?.id }, 'a run of webhooks failed: it is repeated'),
    handlers: ({ queue, connection, stopping: signal, moved }) => {
      const addJobs = async (): Promise<void> => {
        const due = await endpointsDue(Date.now(), maxArmed);
        if (due.length > 0) await queue.addBulk(due.map(jobOf));
      };
      return {
        work: async (job, _token, signal) => deliver(placeOf(job), signal, moved),
        // Adds jobs after each page, also if it fails: events may keep coming.
        enqueue: async () => {
          while (await handOut().finally(addJobs)) await sleep(pageRestMs, undefined, { signal });
        },
        free: async () => {
          const due = await endpointsDue(Date.now(), maxArmed);
          const ids = due.map(({ id }) => deliveryJobId(id));
          await freeJobs({ queue, connection }, ids);
        },
        waiting: async () => {
          const overdue = await endpointsDue(Date.now() - overdueMs, namedOverdue);
          return overdue.length === 0 ? null : overdue.map(({ id }) => id).join();
        },
      };
    },
  });
}

/** BullMQ ignores a job while the endpoint has one. */
const jobOf = ({ tenant, id }: EndpointPlace) => ({
  name: 'deliver',
  data: { v: 1 as const, tenant, id },
  opts: { jobId: deliveryJobId(id) },
});

function placeOf({ data: { v, tenant, id } }: Job<DeliveryJobData>): EndpointPlace {
  if (v !== 1) throw new Error(`delivery job of version ${String(v)}: this process knows 1`);
  return { tenant, id };
}
