/** Routes are in the fragment of the address, because browsers never send it: names of learners stay local. */
import { useEffect, useState } from 'preact/hooks';

/** `#/learner/ada?skill=inference`: page, arguments, and options of the view. */
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

/** Users type and cut addresses. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** @param query null, undefined and empty values are left out */
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

/** Changes options of the view without a new entry in the history. @param changes null removes a value */
export function look(changes: Query): void {
  const { page, args, query } = current();
  history.replaceState(null, '', href(page, args, { ...query, ...changes }));
  for (const hear of listeners) hear();
}
