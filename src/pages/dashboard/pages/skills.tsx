import type { Route } from '../base/route.js';

export function SkillsPage(_: { readonly route: Route }) {
  return <h1>Skills</h1>;
}
