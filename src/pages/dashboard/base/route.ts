/** Routes are in the URL fragment. Browsers never send it, so learner ids stay local. */
import { useEffect, useState } from 'preact/hooks';
import { saveScrollPosition } from './scroll.js';

/** For example `#/learner/ada?skill=inference`. */
export interface Route {
  readonly page: string;
  readonly args: readonly string[];
  readonly query: Readonly<Record<string, string>>;
}

export type Query = Readonly<Record<string, string | number | null | undefined>>;

function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  const [page = '', ...args] = path.split('/').map(decodeSegment);
  return {
    page,
    args: args.filter((arg) => arg !== ''),
    query: Object.fromEntries([...new URLSearchParams(query)].filter(([, value]) => value !== '')),
  };
}

/** Users type and truncate URLs, so encodings may be invalid. */
function decodeSegment(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Omits null, undefined and empty values of the query. */
export function buildHref(page: string, args: readonly string[] = [], query: Query = {}): string {
  const entries = Object.entries(query).filter(
    ([, value]) => value !== null && value !== undefined && value !== '',
  );
  const search = new URLSearchParams(entries.map(([name, value]) => [name, `${value}`]));
  const path = [page, ...args].map(encodeURIComponent).join('/');
  return `#/${path}${entries.length === 0 ? '' : `?${search}`}`;
}

const readRoute = (): Route => parseRoute(location.hash);

const listeners = new Set<() => void>();
addEventListener('hashchange', () => {
  for (const listener of listeners) listener();
});

export function useRoute(): Route {
  const [route, setRoute] = useState(readRoute);
  useEffect(() => {
    const update = (): void => setRoute(readRoute());
    listeners.add(update);
    return () => void listeners.delete(update);
  }, []);
  return route;
}

export const navigate = (page: string, args: readonly string[] = [], query: Query = {}): void => {
  saveScrollPosition();
  location.hash = buildHref(page, args, query);
};

/** Changes view options without a history entry. Null removes an option. */
export function updateQuery(changes: Query): void {
  const { page, args, query } = readRoute();
  history.replaceState(history.state, '', buildHref(page, args, { ...query, ...changes }));
  for (const listener of listeners) listener();
}
