import { after } from 'node:test';

const lingerMs = 10_000;

/**
 * For files that kill servers. A client whose server dies at the wrong moment now and then leaves a socket or a timer
 * behind, which would hold the file open after its last test. By then the results are out; where nothing is left
 * behind, nothing waits for this.
 */
export function exitAfterTests(): void {
  after(() => {
    setTimeout(() => process.exit(), lingerMs).unref();
  });
}
