import type { ClassMastery, ClassPredictions, ListedLearner, Prediction } from '../../../../client/types.js';
import type { Api } from '../../base/session.js';
import { type SkillName, skillsOf } from '../../base/skill-names.js';
import { idsOf, mostLearners } from './list.js';
import { reasonOf, type Standing, type Status, standingOf, statusOf } from './status.js';

type Progress = Extract<ClassMastery['results'][number], { readonly status: 200 }>['data'];

export interface Member extends Standing {
  readonly userId: string;
  readonly status: Status;
  readonly reason: string | null;
  readonly progress: Progress;
  readonly prediction: Prediction;
}

export interface SchoolClass {
  readonly members: readonly Member[];
  readonly missing: readonly string[];
  /** Learners with an error. */
  readonly failed: readonly { readonly userId: string; readonly reason: string }[];
  /** Null on the last page. */
  readonly nextCursor: string | null;
  readonly skills: ReadonlyMap<string, SkillName>;
}

export interface Choice {
  /** If undefined, `prefix` selects the learners. */
  readonly ids?: string | undefined;
  readonly prefix?: string | undefined;
  readonly cursor?: string | undefined;
}

const nobody: SchoolClass = { members: [], missing: [], failed: [], nextCursor: null, skills: new Map() };

export async function readClass(api: Api, choice: Choice, signal: AbortSignal): Promise<SchoolClass> {
  const { ids, nextCursor } = await chosen(api, choice, signal);
  if (ids.length === 0) return nobody;
  const [predictions, mastery, catalogue] = await Promise.all([
    api.classPredictions({ user_ids: ids }, { signal }),
    api.classMastery({ user_ids: ids }, { signal }),
    api.skills({ limit: 1000, signal }),
  ]);
  const skills = skillsOf(catalogue.skills);
  return { ...joined(predictions, mastery, skills), nextCursor, skills };
}

async function chosen(api: Api, { ids, prefix, cursor }: Choice, signal: AbortSignal) {
  if (ids !== undefined) return { ids: idsOf(ids), nextCursor: null };
  const page = await api.learners({ prefix, cursor, limit: mostLearners, signal });
  return { ids: page.learners.map(({ user_id }: ListedLearner) => user_id), nextCursor: page.next_cursor };
}

/** Both responses have the order of the request. */
function joined(
  predictions: ClassPredictions,
  mastery: ClassMastery,
  skills: ReadonlyMap<string, SkillName>,
): Pick<SchoolClass, 'members' | 'missing' | 'failed'> {
  const members: Member[] = [];
  const missing: string[] = [];
  const failed: { userId: string; reason: string }[] = [];
  const now = Date.now();
  for (const [i, predicted] of predictions.results.entries()) {
    const known = mastery.results[i];
    const userId = predicted.user_id;
    if (predicted.status === 200 && known?.status === 200)
      members.push(memberOf(userId, predicted.data, known.data, skills, now));
    else if (predicted.status === 404 || known?.status === 404) missing.push(userId);
    else failed.push({ userId, reason: predicted.status === 200 ? errorOf(known) : predicted.error.message });
  }
  return { members, missing, failed };
}

const errorOf = (result: ClassMastery['results'][number] | undefined): string =>
  result === undefined || result.status === 200 ? 'no answer' : result.error.message;

function memberOf(
  userId: string,
  prediction: Prediction,
  progress: Progress,
  skills: ReadonlyMap<string, SkillName>,
  now: number,
): Member {
  const standing = standingOf(progress, prediction, (id) => skills.get(id)?.name ?? id);
  return {
    ...{ userId, progress, prediction, ...standing },
    status: statusOf(standing, now),
    reason: reasonOf(standing, now),
  };
}
