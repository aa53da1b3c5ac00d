/** Thread of the load generator: gets a ThreadPlan, posts LoadProgress messages and then a ThreadResult. */
import { parentPort, workerData } from 'node:worker_threads';
import { driveLoad } from './drive.js';

parentPort?.postMessage(await driveLoad(workerData, (progress) => parentPort?.postMessage(progress)));
