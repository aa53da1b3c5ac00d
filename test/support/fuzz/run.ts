/** The fuzz of the whole HTTP surface: every answer is judged, and at the end the books are compared. */
import fc from 'fast-check';
import { allScopes } from '../../../src/contracts/access/access.js';
import { waitUntilHealthy } from '../client/healthy.js';
import { callerOf } from '../http/http.js';
import { keysOf, type Scoped, type Service } from '../servers/service.js';
import { assertBooks } from './books.js';
import { createDrive, type Drive } from './drive.js';
import { createLedger } from './ledger.js';
import { type Request, request } from './requests.js';

/** Of one property's run; the one that fails is told as it was sent, for the others have changed what it meets. */
const requestsPerRun = 100;

/**
 * @param requests at least so many are sent
 * @param tell takes the table of answers, before the books are compared
 * @returns what it sent and was told
 */
export async function fuzz(
  t: Scoped,
  service: Service,
  requests: number,
  seed: number,
  tell: (table: string) => void,
): Promise<Drive> {
  const ledger = createLedger();
  const keys = await keysFor(t, service);
  const drive = createDrive({ port: service.port, keys, ledger, connections: 8 });
  const requestLists = fc.array(request, { minLength: requestsPerRun, maxLength: requestsPerRun });
  try {
    await fc.assert(
      fc.asyncProperty(requestLists, (list) => drive.send(list)),
      {
        seed,
        numRuns: Math.ceil(requests / requestsPerRun),
        interruptAfterTimeLimit: 24 * 3_600_000,
        endOnFailure: true,
        reporter: tellCause,
      },
    );
  } finally {
    drive.end();
    tell(drive.counts.table());
  }
  await waitUntilHealthy(callerOf(service, null));
  await assertBooks(t, service, keys.ledger, ledger);
  return drive;
}

/** The list of a hundred requests says less than what was wrong with one. */
function tellCause({ failed, errorInstance }: fc.RunDetails<[Request[]]>): void {
  if (failed) throw errorInstance;
}

/** Nothing that is deleted is deleted in the tenant whose books are kept. */
async function keysFor(t: Scoped, service: Service) {
  const keys = await keysOf(t, service);
  return {
    ledger: await keys.add({ tenant: 'ledger' }),
    wild: await keys.add({ tenant: 'wild' }),
    reader: await keys.add({ tenant: 'wild', scopes: ['read'] }),
    writer: await keys.add({ tenant: 'wild', scopes: ['write'] }),
    operator: await keys.add({ tenant: 'wild', scopes: allScopes }),
    poor: await keys.add({ tenant: 'wild', quota: 20 }),
    unknown: 'nobody',
  };
}
