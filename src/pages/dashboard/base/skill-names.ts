import { useMemo } from 'preact/hooks';
import type { SkillPage } from '../../../client/types.js';
import { useLoad } from './load.js';
import type { Api } from './session.js';

export type Section = 'math' | 'rw' | null;

export interface SkillLabel {
  readonly name: string;
  readonly section: Section;
}

export const formatSection = (section: Section): string =>
  section === null ? 'Both sections' : { math: 'Math', rw: 'Reading and Writing' }[section];

export const indexSkillLabels = (catalogue: SkillPage['skills']): ReadonlyMap<string, SkillLabel> =>
  new Map(catalogue.map(({ skill_id, name, section }) => [skill_id, { name: name ?? skill_id, section }]));

export type SkillNameLookup = (skillId: string) => string;

/** Loads the names of the first 1,000 skills. The id replaces a missing name. */
export function useSkillNames(api: Api): SkillNameLookup {
  const { data } = useLoad((signal) => api.skills({ limit: 1000, signal }), [api]);
  return useMemo(() => {
    const labels = indexSkillLabels(data?.skills ?? []);
    return (skillId) => labels.get(skillId)?.name ?? skillId;
  }, [data]);
}
