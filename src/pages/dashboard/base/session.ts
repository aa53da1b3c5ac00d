/** Stores the API key in sessionStorage, for this tab only. */
import { ApiCalls } from '../../../client/api-calls.js';
import { defaultRetry } from '../../../client/retry.js';
import { Transport } from '../../../client/transport.js';

const storageKey = 'skilltrace-key';

/**
 * Stores the key of a `#key=…` link and removes it from the URL and the history.
 * @returns true if the URL had a key
 */
export function consumeAddressKey(): boolean {
  const key = /^#key=([\w.~-]+)$/.exec(location.hash)?.[1];
  if (key === undefined) return false;
  storeKey(key);
  history.replaceState(null, '', location.pathname);
  return true;
}

export const loadKey = (): string | null => sessionStorage.getItem(storageKey);
export const storeKey = (key: string): void => sessionStorage.setItem(storageKey, key);
export const removeKey = (): void => sessionStorage.removeItem(storageKey);

export type Api = ApiCalls;

export const createApi = (apiKey: string): Api =>
  new ApiCalls(
    new Transport({
      ...{ baseUrl: location.origin, apiKey, timeoutMs: 30_000 },
      fetch: (...request) => fetch(...request),
      // Report errors soon, because the user is waiting.
      retry: { ...defaultRetry, tries: 2, withinMs: 15_000 },
    }),
  );
