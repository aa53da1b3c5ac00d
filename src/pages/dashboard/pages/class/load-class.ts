import type { ClassMastery, ClassPredictions, ListedLearner, Prediction } from '../../../../client/types.js';
import {
  computeStatus,
  explainStatus,
  type Status,
  type StatusInput,
} from '../../../../domain/classes/learner-status.js';
import { fetchInParts, fetchNames, type LearnerNameLookup, maxLearners } from '../../base/groups.js';
import type { Api } from '../../base/session.js';
import { indexSkillLabels, type SkillLabel } from '../../base/skill-names.js';
import { buildStatusInput } from './status-input.js';

type Progress = Extract<ClassMastery['results'][number], { readonly status: 200 }>['data'];

export interface Member extends StatusInput {
  readonly userId: string;
  /** Display name, or the id. */
  readonly name: string;
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
  readonly skills: ReadonlyMap<string, SkillLabel>;
}

export interface ClassSelection {
  /** Members of a saved class, or a list; if undefined, `prefix` selects the learners. */
  readonly userIds?: readonly string[] | undefined;
  readonly prefix?: string | undefined;
  readonly cursor?: string | undefined;
}

export async function loadClass(
  api: Api,
  selection: ClassSelection,
  signal: AbortSignal,
): Promise<SchoolClass> {
  const { ids, nextCursor } = await resolveSelection(api, selection, signal);
  const [predictions, mastery, catalogue, getName] = await Promise.all([
    fetchInParts(ids, (user_ids) => api.classPredictions({ user_ids }, { signal })),
    fetchInParts(ids, (user_ids) => api.classMastery({ user_ids }, { signal })),
    api.skills({ limit: 1000, signal }),
    fetchNames(api, ids, signal),
  ]);
  const skills = indexSkillLabels(catalogue.skills);
  return { ...mergeResults(predictions, mastery, { skills, getName }), nextCursor, skills };
}

async function resolveSelection(api: Api, { userIds, prefix, cursor }: ClassSelection, signal: AbortSignal) {
  if (userIds !== undefined) return { ids: userIds, nextCursor: null };
  const page = await api.learners({ prefix, cursor, limit: maxLearners, signal });
  return { ids: page.learners.map(({ user_id }: ListedLearner) => user_id), nextCursor: page.next_cursor };
}

interface Labels {
  readonly skills: ReadonlyMap<string, SkillLabel>;
  readonly getName: LearnerNameLookup;
}

/** Both responses have the order of the request. */
function mergeResults(
  predictions: ClassPredictions['results'],
  mastery: ClassMastery['results'],
  labels: Labels,
): Pick<SchoolClass, 'members' | 'missing' | 'failed'> {
  const members: Member[] = [];
  const missing: string[] = [];
  const failed: { userId: string; reason: string }[] = [];
  for (const [i, predicted] of predictions.entries()) {
    const progress = mastery[i];
    const userId = predicted.user_id;
    if (predicted.status === 200 && progress?.status === 200)
      members.push(buildMember(userId, predicted.data, progress.data, labels));
    else if (predicted.status === 404 || progress?.status === 404) missing.push(userId);
    else
      failed.push({
        userId,
        reason: predicted.status === 200 ? readErrorMessage(progress) : predicted.error.message,
      });
  }
  return { members, missing, failed };
}

const readErrorMessage = (result: ClassMastery['results'][number] | undefined): string =>
  result === undefined || result.status === 200 ? 'no result' : result.error.message;

function buildMember(
  userId: string,
  prediction: Prediction,
  progress: Progress,
  { skills, getName }: Labels,
): Member {
  const statusInput = buildStatusInput(progress, prediction, (id) => skills.get(id)?.name ?? id);
  return {
    ...{ userId, name: getName(userId), progress, prediction, ...statusInput },
    status: computeStatus(statusInput),
    reason: explainStatus(statusInput),
  };
}
