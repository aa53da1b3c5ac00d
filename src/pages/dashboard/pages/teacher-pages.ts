export { LearnerPage } from './learner.jsx';
export { ModelPage } from './model.jsx';
export { SkillsPage } from './skills.jsx';
