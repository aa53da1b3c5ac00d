import type { Spans } from '../spans.js';
import type { Exchange } from './exchange.js';
import type { Route } from './route.js';

export const beginSpan = (spans: Spans, exchange: Exchange, route: Route | null) =>
  spans(route ? `${exchange.method} ${route.path}` : 'HTTP', (header) => exchange.header(header));

/** By the conventions for HTTP, but for `url.path`: it names learners. @param status null: the client got no whole answer */
export const endSpan = ({ method, span }: Exchange, route: Route | null, status: number | null): void =>
  span?.end({
    ...{ 'url.scheme': 'http', 'http.request.method': route ? method : '_OTHER' },
    ...(route && { 'http.route': route.path }),
    ...(status && { 'http.response.status_code': status }),
    ...((status ?? 500) >= 500 && { 'error.type': `${status ?? 'incomplete'}` }),
  });
