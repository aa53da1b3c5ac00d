/** One job per endpoint with due messages, added again while messages are due. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Job } from 'bullmq';
import { type DeliveryJobData, deliveryJobId, deliveryQueueName } from '../contracts/outbox/job-data.js';
import { ApiError } from '../errors.js';
import type { Logger } from '../logger.js';
import type { Deliver } from '../services/webhooks/deliver-messages.js';
import type { DispatchEvents } from '../services/webhooks/dispatch-messages.js';
import type { EndpointReference } from '../store/webhooks/messages.js';
import { type Consumer, openQueue, startConsumer, unblockJobs } from './consumer.js';

/** Another worker takes over the job of a dead worker within the sum of both. */
const lockMs = 10_000;
const stalledCheckMs = 5000;
const sweepMs = 1000;
/** Leaves CPU time for requests between pages of events. */
const pagePauseMs = 250;
const maxAddedJobs = 1000;
/** An endpoint that hangs blocks one of these slots for 15 s. */
export const maxConcurrentEndpoints = 100;
/** Endpoints that are due for longer count in the stall check. */
const overdueMs = 5000;
const maxListedOverdue = 20;

export interface DeliveryJobsOptions {
  readonly redisUrl: string;
  readonly dispatchEvents: DispatchEvents;
  readonly listDueEndpoints: (now: number, atMost: number) => Promise<readonly EndpointReference[]>;
  readonly deliver: Deliver;
  readonly logger: Logger;
}

export function startDeliveryJobs(options: DeliveryJobsOptions): Consumer {
  const { redisUrl, dispatchEvents, listDueEndpoints, deliver, logger } = options;
  return startConsumer<DeliveryJobData, void>({
    ...{ name: 'webhook delivery', redisUrl, logger },
    openQueue: (connection) => openQueue(deliveryQueueName, connection, { attempts: 1 }),
    worker: { concurrency: maxConcurrentEndpoints, lockDuration: lockMs, stalledInterval: stalledCheckMs },
    enqueueMs: sweepMs,
    onEnqueueFailed: (err) => {
      if (err instanceof ApiError) logger.debug({ err }, 'Redis is unavailable; webhooks are sent later');
      else logger.error({ err }, 'cannot dispatch events to webhooks');
    },
    onJobFailed: (err, job) => logger.warn({ err, job: job?.id }, 'webhook delivery failed; it is retried'),
    handlers: ({ queue, connection, stopping: signal, reportActivity }) => {
      const addJobs = async (): Promise<void> => {
        const due = await listDueEndpoints(Date.now(), maxAddedJobs);
        if (due.length > 0) await queue.addBulk(due.map(toJob));
      };
      return {
        processJob: async (job, _token, signal) => deliver(parseEndpoint(job), signal, reportActivity),
        // Adds jobs after each page, also if it fails: events may keep coming.
        enqueue: async () => {
          while (await dispatchEvents().finally(addJobs)) await sleep(pagePauseMs, undefined, { signal });
        },
        unblockJobs: async () => {
          const due = await listDueEndpoints(Date.now(), maxAddedJobs);
          const ids = due.map(({ id }) => deliveryJobId(id));
          await unblockJobs({ queue, connection }, ids);
        },
        describePending: async () => {
          const overdue = await listDueEndpoints(Date.now() - overdueMs, maxListedOverdue);
          return overdue.length === 0 ? null : overdue.map(({ id }) => id).join();
        },
      };
    },
  });
}

/** BullMQ ignores a job while the endpoint has one. */
const toJob = ({ tenant, id }: EndpointReference) => ({
  name: 'deliver',
  data: { v: 1 as const, tenant, id },
  opts: { jobId: deliveryJobId(id) },
});

function parseEndpoint({ data: { v, tenant, id } }: Job<DeliveryJobData>): EndpointReference {
  if (v !== 1)
    throw new Error(`unsupported version ${String(v)} of a delivery job; this process supports version 1`);
  return { tenant, id };
}
