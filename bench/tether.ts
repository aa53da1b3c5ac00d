/** Preloaded into every process of a benchmark: ends it if the benchmark was killed. */
import { isMainThread } from 'node:worker_threads';

const lookMs = 1000;

if (isMainThread) {
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    process.kill(process.pid, 'SIGTERM');
  }, lookMs);
  watch.unref();
}
