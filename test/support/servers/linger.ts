import { after } from 'node:test';

const lingerMs = 10_000;

/**
 * For files whose servers are killed or hang: a client may leave a socket behind then. And a BullMQ worker that is closed
 * while its blocking connection is about to reconnect waits for ever for the end of that connection, and renews its
 * locks by a timer until then (taskforcesh/bullmq#4585 tells of the same). Both would hold the file open after its last
 * test. By then the results are out; where nothing is left behind, nothing waits for this. The service ends by `exit`,
 * so no operator meets it.
 */
export function exitAfterTests(): void {
  after(() => {
    setTimeout(() => process.exit(), lingerMs).unref();
  });
}
