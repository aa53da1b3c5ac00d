/** Stores the API key in sessionStorage, for this tab only. */
import { ApiCalls } from '../../../client/api-calls.js';
import { defaultRetry } from '../../../client/retry.js';
import { Transport } from '../../../client/transport.js';

const place = 'skilltrace-key';

/**
 * Stores the key of a `#key=…` link and removes it from the URL and the history.
 * @returns true if the URL had a key
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

export type Api = ApiCalls;

export const apiOf = (apiKey: string): Api =>
  new ApiCalls(
    new Transport({
      ...{ baseUrl: location.origin, apiKey, timeoutMs: 30_000 },
      fetch: (...request) => fetch(...request),
      // Report errors soon, because the user is waiting.
      retry: { ...defaultRetry, tries: 2, withinMs: 15_000 },
    }),
  );
