/** Thread of the load generator: gets a ThreadPlan, posts LoadProgress messages and then a ThreadResult. */
import { parentPort, workerData } from 'node:worker_threads';
import { driveLoad } from './drive.js';

export interface LoadProgress {
  readonly responses: number;
  readonly errors: number;
}

const result = await driveLoad(workerData, (responses, errors) =>
  parentPort?.postMessage({ responses, errors } satisfies LoadProgress),
);
parentPort?.postMessage(result);
