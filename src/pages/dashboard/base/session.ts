/** The API key: asked for once, kept in this tab only (sessionStorage), never in an address. */
import { Calls } from '../../../client/calls.js';
import { standardRetry } from '../../../client/retry.js';
import { Transport } from '../../../client/transport.js';

const place = 'skilltrace-key';

/**
 * A link with `#key=…`, as `npm start` prints it, gives the key, which leaves the address and the history at once.
 * @returns whether there was one
 */
export function takeKeyFromAddress(): boolean {
  const key = /^#key=([\w.~-]+)$/.exec(location.hash)?.[1];
  if (key === undefined) return false;
  keepKey(key);
  history.replaceState(null, '', location.pathname);
  return true;
}

export const storedKey = (): string | null => sessionStorage.getItem(place);
export const keepKey = (key: string): void => sessionStorage.setItem(place, key);
export const forgetKey = (): void => sessionStorage.removeItem(place);

/** Every number of the dashboard comes through this: the client that platforms use. */
export type Api = Calls;

export const apiOf = (apiKey: string): Api =>
  new Calls(
    new Transport({
      ...{ baseUrl: location.origin, apiKey, timeoutMs: 30_000 },
      fetch: (...request) => fetch(...request),
      // Somebody looks and waits: an error is told soon.
      retry: { ...standardRetry, tries: 2, withinMs: 15_000 },
    }),
  );
