/**
 * Preloaded into a service by NODE_OPTIONS: tells over a loopback port how long its event loop was held at most. Threads
 * and the processes that the service starts inherit the variables and leave them alone.
 */
import { writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

const names = { portFile: 'TEST_LOOP_PORT_FILE', parent: 'TEST_LOOP_PARENT' };

/** Settings of a service that is watched. @param portFile tells where to ask */
export const loopWatchSettings = (portFile: string): Record<string, string> => ({
  NODE_OPTIONS: `--import=${import.meta.url}`,
  [names.portFile]: portFile,
  [names.parent]: `${process.pid}`,
});

/** Each connection gets the longest delay since the one before, in milliseconds. */
function watch(portFile: string): void {
  const delays = monitorEventLoopDelay({ resolution: 1 });
  delays.enable();
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.end(`${delays.max / 1e6}`);
    delays.reset();
  });
  server.listen(0, '127.0.0.1', () => {
    writeFileSync(portFile, `${(server.address() as AddressInfo).port}`);
  });
  server.unref();
}

const portFile = process.env[names.portFile];
const isWatched = isMainThread && process.env[names.parent] === `${process.ppid}`;
if (isWatched && portFile !== undefined) watch(portFile);
