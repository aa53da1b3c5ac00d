import type { Call } from '../../contracts/access/call.js';
import { dayMs } from '../../domain/base/common.js';
import type { TenantModel } from '../../domain/catalogue/tenant-model.js';
import { classConstants } from '../../domain/classes/class-constants.js';
import { type SkillTallies, tallySkill } from '../../domain/classes/class-skills.js';
import { buildSkillViews } from '../../domain/learner/skill-view.js';
import { computeChangePoints } from '../../domain/prediction/term-texts.js';
import { isPlateau } from '../../domain/tracing/plateau.js';
import { isRapidFlagged } from '../../domain/tracing/response-times.js';
import { isFalling } from '../../domain/tracing/trend.js';
import { splitIntoParts } from '../../lists.js';
import type { Logger } from '../../logger.js';
import { mapInSlices } from '../../slices.js';
import type { LearnerReads, LearnerStates, PackedLearner } from '../../store/learners/learner-reads.js';

export interface ClassContext {
  readonly tenant: string;
  readonly userIds: readonly string[];
  readonly model: TenantModel;
  readonly now: number;
}

/** Limits memory: a learner may have 2,000 skills. */
export const learnersPerPage = 25;

export type ClassLearner = ReturnType<typeof describeLearner>;

/** Members with answers, and their sums by skill. */
export async function collectClass(
  { learners, logger }: { readonly learners: Pick<LearnerReads, 'readPacked'>; readonly logger: Logger },
  context: ClassContext,
  { throwIfDisconnected }: Call,
) {
  const tallies: SkillTallies = new Map();
  const collected: ClassLearner[] = [];
  for (const userIds of splitIntoParts(context.userIds, learnersPerPage)) {
    throwIfDisconnected();
    const packed = await learners.readPacked(context.tenant, userIds);
    await mapInSlices(packed.entries(), ([i, one]) => {
      const found = unpackLearner(one, logger);
      if (found !== null) collected.push(describeLearner(userIds[i] as string, found, context, tallies));
    });
  }
  return { tallies, learners: collected };
}

/** An unreadable learner does not affect the others. */
function unpackLearner(packed: PackedLearner, logger: Logger): LearnerStates | null {
  try {
    return packed.unpack();
  } catch (error) {
    logger.error({ err: error }, 'cannot read a learner of a class; the figures omit the learner');
    return null;
  }
}

function describeLearner(
  userId: string,
  { learner, skills }: LearnerStates,
  { model, now }: ClassContext,
  tallies: SkillTallies,
) {
  const views = buildSkillViews(skills, model, now);
  for (const view of views) tallySkill(tallies, view, { learner, model, now });
  const lastAt = views.reduce((last, { state }) => Math.max(last, state.lastAttemptAt), 0);
  const recent = views.filter(({ state }) => state.lastAttemptAt > now - classConstants.recentDays * dayMs);
  const rapid = recent
    .filter(({ state }) => isRapidFlagged(state.rapid))
    .sort((a, b) => b.state.attempts - a.state.attempts);
  const onPlateau = recent.filter(({ state }) => isPlateau(state.plateau));
  return {
    userId,
    answers: learner.attempts,
    lastAnswerAt: new Date(lastAt).toISOString(),
    fallPoints: isFalling(learner.trend) ? computeChangePoints(learner.trend) : null,
    rapid: rapid[0] === undefined ? null : { skillId: rapid[0].skillId, rapidSkills: rapid.length },
    /** Lowest mastery first. */
    plateaus: onPlateau.sort((a, b) => a.mastery - b.mastery),
  };
}
