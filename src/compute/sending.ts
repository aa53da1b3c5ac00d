import type { DeliveryReply, DeliveryTask } from '../contracts/delivery-tasks.js';
import type { Logger } from '../telemetry.js';
import { anyThread, ServingThreads } from './threads.js';

/** Started when there is something to send; nobody needs its memory otherwise. */
const idleMs = 60_000;

/**
 * The thread that sends webhooks.
 * @param together most tasks that are in flight at a time
 */
export function createSendingThread(together: number, logger: Logger) {
  const threads = new ServingThreads(
    'deliver',
    {
      ...{ minThreads: 0, maxThreads: 1, idleTimeout: idleMs },
      ...{ concurrentTasksPerWorker: together, maxQueue: together },
      loadBalancer: anyThread,
    },
    logger,
  );
  return {
    /** @returns of each message, in their order. @throws TaskAborted, and what is a defect; a receiver's failure is a reply */
    send: (task: DeliveryTask) => threads.run<DeliveryReply[]>(task),
    /** Waits for no receiver: whoever is given a message again sends it. */
    close: () => threads.destroy(),
  };
}
