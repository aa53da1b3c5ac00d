import type { Route } from '../base/route.js';
import { SkillList } from './skills/skill-list.jsx';
import { SkillView } from './skills/skill-view.jsx';

export function SkillsPage({ route: { args } }: { readonly route: Route }) {
  const [skillId] = args;
  return skillId === undefined ? <SkillList /> : <SkillView key={skillId} skillId={skillId} />;
}
