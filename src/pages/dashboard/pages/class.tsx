import type { Route } from '../base/route.js';

export function ClassPage(_: { readonly route: Route }) {
  return <h1>Class</h1>;
}
