import type { Route } from '../base/route.js';

export function LearnerPage(_: { readonly route: Route }) {
  return <h1>Learner</h1>;
}
