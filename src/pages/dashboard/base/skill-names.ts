import { useMemo } from 'preact/hooks';
import type { SkillPage } from '../../../client/types.js';
import { useLoad } from './load.js';
import type { Api } from './session.js';

export type Section = 'math' | 'rw' | null;

export interface SkillName {
  readonly name: string;
  readonly section: Section;
}

export const sectionName = (section: Section): string =>
  section === null ? 'Both sections' : { math: 'Math', rw: 'Reading and Writing' }[section];

export const skillsOf = (catalogue: SkillPage['skills']): ReadonlyMap<string, SkillName> =>
  new Map(catalogue.map(({ skill_id, name, section }) => [skill_id, { name: name ?? skill_id, section }]));

export type NameOf = (skillId: string) => string;

/** Loads the names of the first 1,000 skills. The id replaces a missing name. */
export function useSkillNames(api: Api): NameOf {
  const { data } = useLoad((signal) => api.skills({ limit: 1000, signal }), [api]);
  return useMemo(() => {
    const named = skillsOf(data?.skills ?? []);
    return (skillId) => named.get(skillId)?.name ?? skillId;
  }, [data]);
}
