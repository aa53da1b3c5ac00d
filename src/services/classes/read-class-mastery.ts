import Type from 'typebox';
import { Compile } from 'typebox/compile';
import type { Limiter } from '../../concurrency.js';
import type { Call } from '../../contracts/access/call.js';
import { StoredId } from '../../contracts/schema/ids.js';
import { parseLargeJson } from '../../contracts/schema/json.js';
import { optionalNullable, validate } from '../../contracts/schema/validate.js';
import { round4 } from '../../domain/base/common.js';
import type { TenantModel } from '../../domain/catalogue/tenant-model.js';
import {
  computeExpectedAccuracy,
  isMastered,
  type SkillContext,
} from '../../domain/learner/expected-accuracy.js';
import { buildSkillViews, type SkillView } from '../../domain/learner/skill-view.js';
import { isPlateau } from '../../domain/tracing/plateau.js';
import { ApiError } from '../../errors.js';
import { computeSum, splitIntoParts } from '../../lists.js';
import { mapInSlices } from '../../slices.js';
import type { LearnerReads, PackedLearner } from '../../store/learners/learner-reads.js';
import { type ClassResult, maxClassLearners, maxClassValues } from '../forecasts/forecast-scores.js';
import { countAnswers, type MasteryPorts, userNotFound } from '../learners/read-mastery.js';
import { sortIdsAfter } from '../paging/pages.js';

export interface ClassMasteryPorts extends Pick<MasteryPorts, 'models' | 'now'> {
  readonly limit: Limiter;
  readonly learners: Pick<LearnerReads, 'readPacked'>;
}

export const ClassMasteryRequest = Type.Object(
  {
    user_ids: Type.Array(StoredId, { minItems: 1, maxItems: maxClassLearners }),
    skill_ids: optionalNullable(Type.Array(StoredId, { minItems: 1, maxItems: 1000 })),
  },
  { examples: [{ user_ids: ['ada', 'ben'], skill_ids: ['linear-equations'] }] },
);
const requestValidator = Compile(ClassMasteryRequest);

/** A response of about 16 MB. */
const maxMasteries = 200_000;
/** Limits memory: a learner may have 2,000 skills. */
export const learnersPerPage = 25;

const tooManyMasteries = () =>
  new ApiError(
    'LIMIT_EXCEEDED',
    `The response would have more than ${maxMasteries} masteries; send fewer user_ids, or limit it with skill_ids.`,
  );

/**
 * Each learner has a result or an error. `skill_ids` limits all figures to these skills; an answer then counts once for
 * each of them.
 */
export async function readClassMastery(
  { learners, models, now, limit }: ClassMasteryPorts,
  { tenant, body, throwIfDisconnected }: Call,
): Promise<ClassResult[]> {
  const sent = await parseLargeJson(body, maxClassValues);
  const { user_ids, skill_ids } = validate(requestValidator, sent, 'request');
  const selectedSkills = skill_ids ? new Set(skill_ids) : null;
  return limit(tenant, async () => {
    const [model, at] = [await models.current(tenant), now()];
    const results: ClassResult[] = [];
    let masteries = 0;
    for (const userIds of splitIntoParts(user_ids, learnersPerPage)) {
      throwIfDisconnected();
      const packed = await learners.readPacked(tenant, userIds);
      const described = await mapInSlices(packed, (one) => describeLearner(one, selectedSkills, model, at));
      masteries += computeSum(described.map((one) => one.masteries));
      if (masteries > maxMasteries) throw tooManyMasteries();
      results.push(...described.map(({ result }, i) => ({ userId: userIds[i] as string, result })));
    }
    return results;
  });
}

interface LearnerDescription extends Pick<ClassResult, 'result'> {
  readonly masteries: number;
}

function describeLearner(
  packed: PackedLearner,
  selectedSkills: ReadonlySet<string> | null,
  model: TenantModel,
  at: number,
): LearnerDescription {
  try {
    const found = packed.unpack();
    if (found === null) return { result: userNotFound(), masteries: 0 };
    const skills =
      selectedSkills === null
        ? found.skills
        : found.skills.filter(([skillId]) => selectedSkills.has(skillId));
    const { learner } = found;
    return {
      result: encodeMastery(skills, { learner, model, now: at }, selectedSkills === null),
      masteries: skills.length,
    };
  } catch (cause) {
    const message = 'Internal error: the stored data of this learner is unreadable; see the service log.';
    return { result: new ApiError('INTERNAL', message, { cause }), masteries: 0 };
  }
}

function encodeMastery(
  skills: Parameters<typeof buildSkillViews>[0],
  context: SkillContext,
  areAll: boolean,
): string {
  const { learner, model, now } = context;
  const views = buildSkillViews(skills, model, now);
  const lastAt = views.reduce((last, { state }) => Math.max(last, state.lastAttemptAt), 0);
  const onPlateau = views.flatMap(({ skillId, state }) => (isPlateau(state.plateau) ? [skillId] : []));
  return JSON.stringify({
    ...(areAll ? countAnswers(learner) : sumAnswers(views)),
    last_attempt_at: views.length === 0 ? null : new Date(lastAt).toISOString(),
    plateaus: sortIdsAfter(onPlateau, null),
    mastered: views.filter((view) => isMastered(view, context)).length,
    expected_accuracy: mapBySkill(
      views,
      (view) => computeExpectedAccuracy(view, learner, model, now).expected,
    ),
    mastery: mapBySkill(views, ({ mastery }) => mastery),
  });
}

const sumAnswers = (views: readonly SkillView[]) => ({
  total_attempts: computeSum(views.map(({ state }) => state.attempts)),
  correct_attempts: computeSum(views.map(({ state }) => state.correct)),
});

const mapBySkill = (views: readonly SkillView[], value: (view: SkillView) => number) =>
  Object.fromEntries(views.map((view) => [view.skillId, round4(value(view))]));
