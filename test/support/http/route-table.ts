/** The routes of the service, for tests that call all of them, including routes that are added later. */
import { createAllPageRoutes, withDescription } from '../../../src/http/pages.js';
import type { Route } from '../../../src/http/route.js';
import { createRoutes, type RoutePorts } from '../../../src/http/routes.js';

/** The routes of the API, without the dependencies of their handlers. */
export const apiRoutes = withDescription(createRoutes({} as RoutePorts));

/** The routes of the API and of the pages. */
export const routeTable: readonly Route[] = [...apiRoutes, ...createAllPageRoutes()];

/** The name of a route in the tables of tests. */
export const nameOf = ({ method, path }: Pick<Route, 'method' | 'path'>): string => `${method} ${path}`;

/** The route of a request. */
export interface Target {
  readonly route: Route | null;
  /** Methods of the path; empty for an unknown path. */
  readonly methods: readonly string[];
  /** Undefined for the API. */
  readonly protocol: Route['protocol'];
}

/** @param path as sent, without the query */
export function targetOf(method: string, path: string): Target {
  const segments = path.split('/');
  const here = routeTable.filter((route) => fits(route.path.split('/'), segments));
  const wanted = method === 'HEAD' ? 'GET' : method;
  return {
    route: bestOf(here.filter((route) => route.method === wanted)),
    protocol: here[0]?.protocol,
    methods: here.flatMap((route) => (route.method === 'GET' ? ['GET', 'HEAD'] : [route.method])),
  };
}

const fits = (pattern: readonly string[], segments: readonly string[]): boolean =>
  pattern.length === segments.length &&
  pattern.every((part, i) => part === segments[i] || (part.startsWith(':') && segments[i] !== ''));

/** A literal segment wins over a parameter. */
const bestOf = (routes: readonly Route[]): Route | null =>
  [...routes].sort((a, b) => parameters(a) - parameters(b))[0] ?? null;

const parameters = ({ path }: Route): number => path.match(/:/g)?.length ?? 0;
