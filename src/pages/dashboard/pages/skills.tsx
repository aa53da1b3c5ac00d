/** How all learners do on the skills, and what the model assumes of each. */
import type { Route } from '../base/route.js';
import { SkillList } from './skills/list.jsx';
import { OneSkill } from './skills/one.jsx';

export function SkillsPage({ route: { args } }: { readonly route: Route }) {
  const [skillId] = args;
  return skillId === undefined ? <SkillList /> : <OneSkill key={skillId} skillId={skillId} />;
}
