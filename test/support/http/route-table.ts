/** The service's table of routes, for tests that walk it: one that is added later is walked too, or fails the test. */

import { createAllPageRoutes, withDescription } from '../../../src/http/pages.js';
import type { Route } from '../../../src/http/route.js';
import { createRoutes, type RoutePorts } from '../../../src/http/routes.js';

/** Those of the API, without what their handlers need: nobody calls them here. */
export const apiRoutes = withDescription(createRoutes({} as RoutePorts));

/** With the pages. */
export const routeTable: readonly Route[] = [...apiRoutes, ...createAllPageRoutes()];

/** As the tables that go with the routes name them. */
export const nameOf = ({ method, path }: Pick<Route, 'method' | 'path'>): string => `${method} ${path}`;

/** What a request's method and path lead to. */
export interface Target {
  readonly route: Route | null;
  /** Methods of the path, where it is one of ours. */
  readonly methods: readonly string[];
  /** Of the path; undefined: the API's own. */
  readonly protocol: Route['protocol'];
}

/** @param path as it is sent, without its query */
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
