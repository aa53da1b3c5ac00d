/** Routes are in the URL fragment. Browsers never send it, so learner ids stay local. */
import { useEffect, useState } from 'preact/hooks';

/** For example `#/learner/ada?skill=inference`. */
export interface Route {
  readonly page: string;
  readonly args: readonly string[];
  readonly query: Readonly<Record<string, string>>;
}

export type Query = Readonly<Record<string, string | number | null | undefined>>;

function routeOf(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  const [page = '', ...args] = path.split('/').map(decoded);
  return {
    page,
    args: args.filter((arg) => arg !== ''),
    query: Object.fromEntries([...new URLSearchParams(query)].filter(([, value]) => value !== '')),
  };
}

/** Users type and truncate URLs, so encodings may be invalid. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Omits null, undefined and empty values of the query. */
export function href(page: string, args: readonly string[] = [], query: Query = {}): string {
  const given = Object.entries(query).filter(
    ([, value]) => value !== null && value !== undefined && value !== '',
  );
  const search = new URLSearchParams(given.map(([name, value]) => [name, `${value}`]));
  const path = [page, ...args].map(encodeURIComponent).join('/');
  return `#/${path}${given.length === 0 ? '' : `?${search}`}`;
}

const current = (): Route => routeOf(location.hash);

const listeners = new Set<() => void>();
addEventListener('hashchange', () => {
  for (const hear of listeners) hear();
});

export function useRoute(): Route {
  const [route, setRoute] = useState(current);
  useEffect(() => {
    const hear = (): void => setRoute(current());
    listeners.add(hear);
    return () => void listeners.delete(hear);
  }, []);
  return route;
}

export const go = (page: string, args: readonly string[] = [], query: Query = {}): void => {
  location.hash = href(page, args, query);
};

/** Changes view options without a history entry. Null removes an option. */
export function look(changes: Query): void {
  const { page, args, query } = current();
  history.replaceState(null, '', href(page, args, { ...query, ...changes }));
  for (const hear of listeners) hear();
}
