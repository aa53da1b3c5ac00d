/** Saved classes, and other groups of learners. */
import { useEffect } from 'preact/hooks';
import { SkilltraceError } from '../../../client/errors.js';
import type { GroupPage } from '../../../client/types.js';
import { distinct, splitIntoParts } from '../../../lists.js';
import { type LoadState, useLoad } from './load.js';
import type { Api } from './session.js';

export type ListedGroup = GroupPage['groups'][number];

/** More are found by typing the id. */
const maxListed = 1000;

export const useGroups = (api: Api) =>
  useLoad(async (signal) => sortClassesFirst((await api.groups({ limit: maxListed, signal })).groups), [api]);

const sortClassesFirst = (groups: readonly ListedGroup[]): readonly ListedGroup[] =>
  groups.toSorted(
    (a, b) =>
      Number(b.kind === 'class') - Number(a.kind === 'class') ||
      a.name.localeCompare(b.name, undefined, { numeric: true }),
  );

const storageKey = (tenant: string): string => `skilltrace-class:${tenant}`;

/** The class that the user opened last. */
export const readLastGroup = (tenant: string): string | undefined =>
  localStorage.getItem(storageKey(tenant)) ?? undefined;
export const forgetLastGroup = (tenant: string): void => localStorage.removeItem(storageKey(tenant));

/** Remembers a class when it is loaded, and forgets it if it is deleted. */
export function useLastGroup(tenant: string, load: LoadState<{ readonly group_id: string } | null>): void {
  const { data, error } = load;
  useEffect(() => {
    if (data !== null) localStorage.setItem(storageKey(tenant), data.group_id);
    if (error instanceof SkilltraceError && error.status === 404) forgetLastGroup(tenant);
  }, [data, error]);
}

/** The id replaces a missing display name. */
export type LearnerNameLookup = (userId: string) => string;

export async function fetchNames(
  api: Api,
  userIds: readonly string[],
  signal: AbortSignal,
): Promise<LearnerNameLookup> {
  if (userIds.length === 0) return (userId) => userId;
  const { profiles } = await api.profiles({ user_ids: distinct(userIds) }, { signal });
  const names = new Map(profiles.map(({ user_id, display_name }) => [user_id, display_name]));
  return (userId) => names.get(userId) ?? userId;
}

/** Limit of POST /predictions and POST /mastery. */
export const maxLearners = 500;

/** Fetches a result for each learner, one part after the other. */
export async function fetchInParts<Result>(
  userIds: readonly string[],
  fetchPart: (userIds: readonly string[]) => Promise<{ readonly results: readonly Result[] }>,
): Promise<Result[]> {
  const all: Result[] = [];
  for (const part of splitIntoParts(userIds, maxLearners)) all.push(...(await fetchPart(part)).results);
  return all;
}
