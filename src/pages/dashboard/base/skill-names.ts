import { useMemo } from 'preact/hooks';
import { useLoad } from './load.js';
import type { Api } from './session.js';

export type NameOf = (skillId: string) => string;

/** Names of skills as the catalogue has them, of its first thousand; the id of one that has none, and until they are there. */
export function useSkillNames(api: Api): NameOf {
  const { data } = useLoad((signal) => api.skills({ limit: 1000, signal }), [api]);
  return useMemo(() => {
    const names = new Map(data?.skills.map(({ skill_id, name }) => [skill_id, name]));
    return (skillId) => names.get(skillId) ?? skillId;
  }, [data]);
}
