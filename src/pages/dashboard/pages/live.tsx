import type { Route } from '../base/route.js';

export function LivePage(_: { readonly route: Route }) {
  return <h1>Live</h1>;
}
