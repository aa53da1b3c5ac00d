import type { Route } from '../base/route.js';

export function ModelPage(_: { readonly route: Route }) {
  return <h1>Model</h1>;
}
