/** Skills as people call them. */
import type { SkillPage } from '../../../../client/types.js';

export type Section = 'math' | 'rw' | null;

export interface SkillName {
  readonly name: string;
  readonly section: Section;
}

export const sectionName = (section: Section): string =>
  section === null ? 'Both sections' : { math: 'Math', rw: 'Reading and Writing' }[section];

/** By their ids; a skill without a name is called by its id. */
export const skillsOf = (catalogue: SkillPage['skills']): ReadonlyMap<string, SkillName> =>
  new Map(catalogue.map(({ skill_id, name, section }) => [skill_id, { name: name ?? skill_id, section }]));
