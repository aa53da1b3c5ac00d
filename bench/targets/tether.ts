/** Preloaded into processes of a benchmark: ends them if the benchmark was killed. */
import { isMainThread } from 'node:worker_threads';

const checkMs = 1000;

if (isMainThread) {
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    process.kill(process.pid, 'SIGTERM');
  }, checkMs);
  watch.unref();
}
