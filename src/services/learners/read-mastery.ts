import Type, { type Static } from 'typebox';
import type { Call } from '../../contracts/access/call.js';
import { toSnakeCase } from '../../contracts/answers/export-record.js';
import { round1, round4, roundOrNull } from '../../domain/base/common.js';
import {
  computeExpectedAccuracy,
  type computeExpectedRange,
  isMastered,
  type SkillContext,
} from '../../domain/learner/expected-accuracy.js';
import { explainExpected, predictNextMastery, splitMasteryChange } from '../../domain/learner/explanation.js';
import { buildSkillView, type SkillView } from '../../domain/learner/skill-view.js';
import { formatChange } from '../../domain/prediction/term-texts.js';
import { computeCalibration } from '../../domain/tracing/calibration.js';
import type { LearnerState, SkillState } from '../../domain/tracing/learner-states.js';
import { isPlateau } from '../../domain/tracing/plateau.js';
import {
  computeCorrectPerMinute,
  computeEfficiencyIndex,
  computeSkillNorm,
  missingEfficiencyReason,
} from '../../domain/tracing/response-times.js';
import { ApiError } from '../../errors.js';
import type { Logger } from '../../logger.js';
import type { LearnerReads } from '../../store/learners/learner-reads.js';
import type { AttemptQuery, SkillHistory, StoredAttempt } from '../../warehouse/reads/skill-history.js';
import { describeParameters, type ModelPorts } from '../catalogue/read-skills.js';
import type { SourceLagPorts } from '../outbox/wait-until-stored.js';
import {
  buildPage,
  decodeIdCursor,
  defaultPageLimit,
  encodeIdCursor,
  encodeList,
  type PageQuery,
  sortIdsAfter,
} from '../paging/pages.js';

/** All throw ApiError UNAVAILABLE. */
export interface MasteryPorts extends ModelPorts {
  readonly learners: Pick<LearnerReads, 'read' | 'readState'>;
  readonly now: () => number;
}

export interface HistoryPorts<History> extends MasteryPorts, SourceLagPorts {
  readonly history: History;
  readonly logger: Logger;
}

/**
 * `found` is null if ClickHouse is unavailable or busy. Reads the lag first: a missing answer is then still
 * pending.
 */
export async function readHistory<History, Found>(
  {
    history,
    sourceLagSeconds,
    logger,
  }: Pick<HistoryPorts<History>, 'history' | 'sourceLagSeconds' | 'logger'>,
  read: (history: History) => Promise<Found | null>,
): Promise<{ readonly lag: number | null; readonly found: Found | null }> {
  const lag = await sourceLagSeconds();
  try {
    return { lag, found: await read(history) };
  } catch (error) {
    logger.warn({ err: error }, 'cannot read the history of a learner from ClickHouse; its fields are null');
    return { lag, found: null };
  }
}

export const userNotFound = (): ApiError =>
  new ApiError('USER_NOT_FOUND', 'No answers recorded for this user_id.');

/** For calls that accept a learner without answers. */
export const learnerNotFound = (): ApiError =>
  new ApiError('USER_NOT_FOUND', 'No answers, goal, profile or group recorded for this user_id.');

export async function readLearner({ learners, models }: MasteryPorts, tenant: string, userId: string) {
  const [found, model] = await Promise.all([learners.read(tenant, userId), models.current(tenant)]);
  if (found === null) throw userNotFound();
  return { ...found, model };
}

export async function readLearnerState(
  { learners }: Pick<MasteryPorts, 'learners'>,
  tenant: string,
  userId: string,
): Promise<LearnerState> {
  const learner = await learners.readState(tenant, userId);
  if (learner === null) throw userNotFound();
  return learner;
}

export function findSkillState(skills: ReadonlyMap<string, SkillState>, skillId: string): SkillState {
  const skill = skills.get(skillId);
  if (skill !== undefined) return skill;
  throw new ApiError('SKILL_NOT_FOUND', 'No answers recorded for this user_id and skill_id.');
}

async function readSkillView(ports: MasteryPorts, tenant: string, userId: string, skillId: string) {
  const { learner, skills, model } = await readLearner(ports, tenant, userId);
  const now = ports.now();
  return { learner, model, now, view: buildSkillView(skillId, findSkillState(skills, skillId), model, now) };
}

export async function readMastery(
  ports: MasteryPorts,
  { tenant, query: { limit, cursor } }: Call<PageQuery>,
  userId: string,
): Promise<string> {
  const after = decodeIdCursor(cursor);
  const { learner, skills, model } = await readLearner(ports, tenant, userId);
  const now = ports.now();
  const max = limit ?? (cursor === undefined ? skills.size : defaultPageLimit);
  const page = buildPage(sortIdsAfter(skills.keys(), after), max, encodeIdCursor);
  const viewOne = (id: string): SkillView => buildSkillView(id, findSkillState(skills, id), model, now);
  const describe = (id: string): object => describeSkill({ view: viewOne(id), learner, model, now });
  return encodeList({ user_id: userId, ...countAnswers(learner) }, 'skills', page, describe);
}

export const countAnswers = ({ attempts, trace }: LearnerState) => ({
  total_attempts: attempts,
  correct_attempts: trace.right,
});

type SkillViewContext = SkillContext & { readonly view: SkillView };

/** Answers per minute have 4 decimals, because slow work has few. */
export function describeSkill({ view, learner, model, now }: SkillViewContext) {
  const { skillId, state, placement, mastery } = view;
  const norm = computeSkillNorm(view.model.times);
  return {
    skill_id: skillId,
    section: placement.section,
    ...describeRange(computeExpectedAccuracy(view, learner, model, now)),
    mastery: round4(mastery),
    mastery_at_last_attempt: round4(state.mastery),
    mastered: isMastered(view, { learner, model, now }),
    total_attempts: state.attempts,
    correct_attempts: state.correct,
    plateau_detected: isPlateau(state.plateau),
    efficiency_index: roundOrNull(computeEfficiencyIndex(state.pace, state.rapid, norm), round1),
    efficiency_reason: missingEfficiencyReason(state.pace, state.rapid),
    correct_per_minute: roundOrNull(computeCorrectPerMinute(state.pace)),
    confidence_bias: roundOrNull(computeCalibration(state.calibration)?.bias ?? null),
    last_attempt_at: new Date(state.lastAttemptAt).toISOString(),
  };
}

export const describeRange = ({ expected, low, high }: ReturnType<typeof computeExpectedRange>) => ({
  expected_accuracy: round4(expected),
  expected_low: round4(low),
  expected_high: round4(high),
});

export const ExplainQuery = Type.Object({
  explain: Type.Enum(['true', 'false'], { default: 'false' }),
  steps: Type.Integer({ minimum: 1, maximum: 50, default: 10 }),
});

export type ExplainPorts = HistoryPorts<Pick<SkillHistory, 'fetchAttempts'>>;

/** Only the steps of an explanation come from ClickHouse. */
export async function readSkillMastery(
  ports: ExplainPorts,
  { tenant, query: { explain, steps } }: Call<Static<typeof ExplainQuery>>,
  userId: string,
  skillId: string,
): Promise<object> {
  const viewed = await readSkillView(ports, tenant, userId, skillId);
  const skill = describeSkill(viewed);
  if (explain === 'false') return { user_id: userId, ...skill };
  const { view, learner, model, now } = viewed;
  const { state, mastery } = view;
  const query = { tenant, userId, skillId, upTo: learner.attempts, atMost: steps + 1 };
  const { ifCorrect, ifWrong } = predictNextMastery(view.model.parameters, mastery);
  const { logOdds, terms } = explainExpected(view, learner, model, now);
  return {
    user_id: userId,
    ...skill,
    explanation: {
      parameters: describeParameters(view.model),
      ...(await describeSteps(ports, query, state.attempts)),
      forgetting_since_last_attempt: computeChange(state.mastery, mastery),
      next: {
        if_correct: { mastery: round4(ifCorrect), change: computeChange(mastery, ifCorrect) },
        if_wrong: { mastery: round4(ifWrong), change: computeChange(mastery, ifWrong) },
      },
      p_correct: skill.expected_accuracy,
      log_odds: logOdds,
      recent_change: formatChange(learner.trend),
      terms: terms.map(({ name, ...term }) => ({ name: toSnakeCase(name), ...term })),
    },
  };
}

const computeChange = (from: number, to: number): number => round4(round4(to) - round4(from));

const notes = {
  unavailable: 'Recent answers are unavailable; all other fields are up to date.',
  pending: 'Steps do not include the newest answers, which are not stored in ClickHouse yet.',
  archived: 'Older answers are archived as daily sums.',
};

async function describeSteps(ports: ExplainPorts, query: AttemptQuery, attempts: number): Promise<object> {
  const { lag, found } = await readHistory(ports, (history) => history.fetchAttempts(query));
  if (found === null)
    return { steps: null, pending_attempts: null, source_lag_seconds: null, note: notes.unavailable };
  const pending = attempts - found.stored - found.archived;
  const isCut = found.archived > 0 && found.attempts.length < query.atMost;
  return {
    steps: explainSteps(found.attempts, query, ports.logger),
    pending_attempts: pending,
    source_lag_seconds: pending === 0 ? 0 : lag,
    note: pending !== 0 ? notes.pending : isCut ? notes.archived : null,
  };
}

/** In a full query, the first answer only shows the mastery before the steps. */
function explainSteps(
  read: readonly StoredAttempt[],
  { tenant, atMost }: AttemptQuery,
  logger: Logger,
): object[] {
  const first = read.length < atMost ? 0 : 1;
  return read.slice(first).map((attempt, i) => {
    const previous = findPreviousMastery(attempt, read[first + i - 1]);
    const parts = splitMasteryChange(attempt, previous);
    const { learnerSeq, parametersVersion } = attempt;
    if (parts.posterior === null || (parts.previous === null && previous !== null)) {
      const message = 'the figures of a stored answer are inconsistent';
      logger.error({ tenant, learnerSeq, parametersVersion }, message);
    }
    return {
      occurred_at: new Date(attempt.occurredAt).toISOString(),
      learner_seq: learnerSeq,
      is_correct: attempt.isCorrect,
      ...(attempt.otherSkills.length > 0 && { other_skills: attempt.otherSkills }),
      question_difficulty: attempt.questionDifficulty,
      mastery_before_forgetting: parts.previous,
      forgetting: parts.forgetting,
      mastery_before: parts.before,
      evidence: parts.evidence,
      learning: parts.learning,
      mastery_after: parts.after,
      p_correct: round4(attempt.pCorrect),
      parameters_version: parametersVersion,
    };
  });
}

/** Null if an answer in between is missing: it may have been on this skill. */
function findPreviousMastery(attempt: StoredAttempt, before: StoredAttempt | undefined): number | null {
  if (attempt.missingBefore !== (before?.missingBefore ?? 0)) return null;
  return before === undefined ? attempt.parameters.pInit : before.masteryAfter;
}
