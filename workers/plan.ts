import { encodeAttemptRow } from '../src/contracts/attempt-row.js';
import type { LearningEventResult } from '../src/contracts/events.js';
import type { TrackEvent, TrackOutcome } from '../src/contracts/tasks.js';
import { baselineOf } from '../src/domain/forecast.js';
import { type AnswerEffect, applyAnswer, newLearner, newSkill } from '../src/domain/mastery.js';
import { defaultParameters, defaultParametersVersion, modelVersion } from '../src/domain/params.js';
import { round4 } from '../src/domain/probability.js';
import type { LearnerState, SkillState } from '../src/domain/types.js';
import {
  decodeFirstAnswer,
  encodeFirstAnswer,
  type FirstAnswer,
  fingerprintOf,
  type ToldFigures,
} from '../src/store/event-ids.js';
import type { LearnerCommit, LoadedLearner } from '../src/store/learner-store.js';

/** The answers of one learner in a batch. */
export interface LearnerWork {
  readonly partition: number;
  readonly tenant: string;
  readonly userId: string;
  /** Events with their places in the task, in order of arrival. */
  readonly events: { readonly place: number; readonly event: TrackEvent; readonly idHash: Buffer | null }[];
}

/** What one learner's answers come to: what to tell, and what to write if anything was counted. */
export interface LearnerPlan {
  /** One per event, in order. */
  readonly told: readonly { readonly outcome: TrackOutcome; readonly data: string }[];
  readonly commit: LearnerCommit | null;
  /** Skills that this learner answers for the first time. */
  readonly newSkills: readonly { readonly tenant: string; readonly skillId: string }[];
}

/** All the learner's skills as stored, for the baseline. */
export interface BaselineInput {
  readonly skills: ReadonlyMap<string, SkillState>;
  readonly knownSkills: number;
}

/** The learner's states while the answers of a batch are applied one after another. */
interface Draft {
  learner: LearnerState;
  readonly skills: Map<string, SkillState>;
  readonly touched: Map<string, SkillState>;
  readonly answersById: Map<string, FirstAnswer>;
  readonly rows: string[];
  readonly firstAnswers: { id: Buffer; answer: Buffer }[];
  importLine: number;
}

/**
 * Applies a learner's answers in order. Pure but for what it is given: nothing is read or written here.
 *
 * @param skillIds the skills of `loaded.skills`, in its order
 * @param baseline given when these answers may bring the learner to the baseline
 */
export function planLearner(
  work: LearnerWork,
  skillIds: readonly string[],
  loaded: LoadedLearner,
  baseline: BaselineInput | null,
  acceptNewIds: boolean,
): LearnerPlan {
  const draft = draftOf(work, skillIds, loaded);
  const told = work.events.map(({ event, idHash }) => {
    if (event.importLine !== null && event.importLine <= loaded.importLine)
      return { outcome: 'skipped', data: '' } as const;
    const first = idHash && draft.answersById.get(idHash.toString('latin1'));
    if (first) return repeat(event, first);
    if (idHash && !acceptNewIds) return { outcome: 'unavailable', data: idsExhausted } as const;
    return { outcome: 'counted', data: count(draft, event, idHash, baseline) } as const;
  });
  const newSkills = [...draft.touched.keys()].filter(
    (skillId) => loaded.skills[skillIds.indexOf(skillId)] === null,
  );
  return {
    told,
    commit: draft.rows.length === 0 ? null : commitOf(work, loaded, draft),
    newSkills: newSkills.map((skillId) => ({ tenant: work.tenant, skillId })),
  };
}

const idsExhausted = 'Event ids cannot be remembered long enough right now; try again later';

function draftOf(work: LearnerWork, skillIds: readonly string[], loaded: LoadedLearner): Draft {
  const skills = new Map<string, SkillState>();
  skillIds.forEach((skillId, i) => {
    const skill = loaded.skills[i];
    if (skill) skills.set(skillId, skill);
  });
  const answersById = new Map<string, FirstAnswer>();
  const asked = work.events.flatMap(({ idHash }) => (idHash === null ? [] : [idHash]));
  asked.forEach((idHash, i) => {
    const record = loaded.firstAnswers[i];
    if (record) answersById.set(idHash.toString('latin1'), decodeFirstAnswer(record));
  });
  const learner = loaded.learner ?? newLearner;
  return { learner, skills, touched: new Map(), answersById, rows: [], firstAnswers: [], importLine: 0 };
}

/** A repeated id gives the first answer again; the same id on a different event is refused. */
function repeat(event: TrackEvent, first: FirstAnswer): { outcome: TrackOutcome; data: string } {
  if (!first.fingerprint.equals(fingerprintOf(event))) return { outcome: 'reused', data: '' };
  return { outcome: 'replayed', data: resultOf(first) };
}

/** Counts one answer; returns what to tell. */
function count(
  draft: Draft,
  event: TrackEvent,
  idHash: Buffer | null,
  baseline: BaselineInput | null,
): string {
  const before = draft.skills.get(event.skillId) ?? newSkill(defaultParameters);
  const effect = applyAnswer(draft.learner, before, event, defaultParameters);
  draft.skills.set(event.skillId, effect.skill);
  draft.touched.set(event.skillId, effect.skill);
  draft.learner = baseline === null ? effect.learner : withBaseline(effect.learner, draft, baseline);
  draft.rows.push(rowOf(event, before, effect));
  draft.importLine = event.importLine ?? 0;
  const told = figuresOf(before, effect);
  if (idHash !== null) remember(draft, event, idHash, { ...told, fingerprint: fingerprintOf(event) });
  return resultOf(told);
}

function remember(draft: Draft, event: TrackEvent, idHash: Buffer, first: FirstAnswer): void {
  draft.answersById.set(idHash.toString('latin1'), first);
  draft.firstAnswers.push({ id: idHash, answer: encodeFirstAnswer(first, event.receivedAt) });
}

function withBaseline(
  learner: LearnerState,
  draft: Draft,
  { skills, knownSkills }: BaselineInput,
): LearnerState {
  const current = new Map([...skills, ...draft.touched]);
  return { ...learner, baselineTotal: baselineOf(learner, [...current.values()], knownSkills) };
}

function figuresOf(before: SkillState, { skill }: AnswerEffect): ToldFigures {
  return {
    masteryBefore: round4(before.mastery),
    masteryAfter: round4(skill.mastery),
    attempts: skill.attempts,
    correct: skill.correct,
    plateauDetected: false,
  };
}

function resultOf(answer: ToldFigures): string {
  const result: LearningEventResult = {
    mastery_before: answer.masteryBefore,
    mastery_after: answer.masteryAfter,
    velocity: round4(answer.masteryAfter - answer.masteryBefore),
    plateau_detected: answer.plateauDetected,
    total_attempts: answer.attempts,
    correct_attempts: answer.correct,
    recommendation: null,
  };
  return JSON.stringify(result);
}

function rowOf(event: TrackEvent, before: SkillState, { learner, step }: AnswerEffect): string {
  const figures = {
    learnerSeq: learner.attempts,
    masteryBefore: before.mastery,
    masteryAfter: step.masteryAfter,
    pCorrect: step.pCorrect,
    plateauDetected: false,
    parametersVersion: defaultParametersVersion,
    modelVersion,
  };
  return encodeAttemptRow(event, figures, defaultParameters);
}

function commitOf(
  { partition, tenant, userId }: LearnerWork,
  loaded: LoadedLearner,
  draft: Draft,
): LearnerCommit {
  const expectedVersion = loaded.learner?.version ?? 0;
  return {
    partition,
    tenant,
    userId,
    expectedVersion,
    learner: { ...draft.learner, version: expectedVersion + 1 },
    skills: draft.touched,
    rows: draft.rows,
    firstAnswers: draft.firstAnswers,
    importLine: draft.importLine,
  };
}
