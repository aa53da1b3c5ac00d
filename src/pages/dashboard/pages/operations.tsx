import type { Route } from '../base/route.js';

export function OperationsPage(_: { readonly route: Route }) {
  return <h1>Operations</h1>;
}
