import type { Route } from '../base/route.js';
import { SkillList } from './skills/list.jsx';
import { OneSkill } from './skills/one.jsx';

export function SkillsPage({ route: { args } }: { readonly route: Route }) {
  const [skillId] = args;
  return skillId === undefined ? <SkillList /> : <OneSkill key={skillId} skillId={skillId} />;
}
