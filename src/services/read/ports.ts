/**
 * What the use cases need of the outside, and what they may rely on. Adapters implement these and never see one
 * another.
 */
import type { ForecastOrder, SubmissionForm, TrackOutcome, WhatIfTask } from '../../contracts/tasks.js';
import type { LearnerState, SkillState } from '../../domain/base/types.js';
import type { SkillEntry } from '../../domain/catalogue/catalogue.js';
import type { GoalSetting, StoredGoal } from '../../domain/catalogue/goal-setting.js';
import type { SkillSetting } from '../../domain/catalogue/skill-setting.js';
import type { TenantModel } from '../../domain/catalogue/tenant-model.js';
import type { CountedAnswer } from '../../domain/prediction/explain.js';
import type { ApiError } from '../../errors.js';

/** What became of one event. */
export interface Tracked {
  readonly outcome: TrackOutcome;
  /** JSON of the result when counted or replayed; the reason when beyond a limit or unavailable. */
  readonly data: string;
}

/** Answers as they were sent: whoever counts them reads and checks them too. */
export interface Submission {
  readonly form: SubmissionForm;
  readonly tenant: string;
  readonly body: Uint8Array;
  /** Stands for event ids where the body has none. */
  readonly idempotencyKey: string | null;
  /** Unix milliseconds. */
  readonly receivedAt: number;
}

/** A single answer on its way. */
export interface OpenAnswer {
  readonly submission: Submission;
  /** Milliseconds, as performance.now() tells them. */
  readonly since: number;
  /** Tells its caller, who no longer hears of the outcome. */
  refuse(error: ApiError): void;
}

/** Counts answers. */
export interface AttemptTracker {
  /**
   * Counts the events of a submission in their order; one learner's answers keep their order, across submissions
   * too. An import's submission is one batch, whose events must share a lane (`laneOf`).
   *
   * @param importId hash of the file being imported; null for live answers
   * @returns one result per event: once it tells `counted`, the new mastery, the event id and the attempt record are
   * committed together
   * @throws ApiError INVALID_REQUEST for what is no submission, UNAVAILABLE for what does not fit the bounded queues,
   * INTERNAL for a defect
   */
  track(submission: Submission, importId: string | null): Promise<readonly Tracked[]>;
  /** The same for a single event, without a promise: each costs more than handing the event on. */
  trackOne(submission: Submission, told: (tracked: Tracked | Error) => void): void;
  /** The single events that are not told yet, those of a learner in their order. */
  open(): Iterable<OpenAnswer>;
  /** Why `track` would refuse whatever it is given now of the tenant; null where it may take something. */
  full(tenant: string): ApiError | null;
}

/**
 * JSON of a prediction result; null for a learner without answers; an Error for one whose forecast failed by a defect,
 * which no other learner's has to do with.
 */
export type ToldForecast = string | null | Error;

/** Throws once nobody waits for the answer any more: work that stood in a line is not begun then. */
export type StillWanted = () => void;

/** Computes forecasts off the front end's thread. @throws ApiError UNAVAILABLE, and what `stillWanted` throws */
export interface Forecaster {
  /** What became of each learner, in their order. */
  forecast(order: ForecastOrder, stillWanted: StillWanted): Promise<readonly ToldForecast[]>;
  /** JSON of the result, null for a learner without answers. @throws ApiError SKILL_NOT_FOUND */
  whatIf(task: Omit<WhatIfTask, 'kind'>, stillWanted: StillWanted): Promise<string | null>;
}

/** Reads learners' states. @throws ApiError UNAVAILABLE */
export interface LearnerReader {
  /** Null where the learner has no counted answer. */
  read(
    tenant: string,
    userId: string,
  ): Promise<{ learner: LearnerState; skills: ReadonlyMap<string, SkillState> } | null>;
  /** The same without the skills, of which there may be thousands. */
  own(tenant: string, userId: string): Promise<LearnerState | null>;
}

/** Knows the models in force. @throws ApiError UNAVAILABLE */
export interface ModelReader {
  /** What is served to the tenant; version 0 before the first fit. */
  current(tenant: string): Promise<TenantModel>;
}

/** Knows the skills that a tenant's learners have answered or its catalogue has. @throws ApiError UNAVAILABLE */
export interface SkillDirectory {
  /** By the bytes of their names, from the one behind `after` on. */
  list(tenant: string, after: string | null, atMost: number): Promise<string[]>;
  has(tenant: string, skillId: string): Promise<boolean>;
  /** Takes it off the known ones, until somebody answers it for the first time. */
  forget(tenant: string, skillId: string): Promise<void>;
}

/** Something with the tag by which a caller can tell whether it is still the same. */
export interface Tagged<Value> {
  readonly value: Value;
  /** Opaque; without quotes. */
  readonly tag: string;
}

/** Tags that a write depends on: any (`*`), or one of a list; null: the write depends on nothing. */
export type IfMatch = '*' | readonly string[] | null;

/** A learner's goal, set anew or (null) taken away. */
export interface GoalWrite {
  readonly tenant: string;
  readonly userId: string;
  readonly setting: GoalSetting | null;
  readonly ifMatch: IfMatch;
  /** Unix milliseconds. */
  readonly now: number;
}

/** `mismatch`: the tag is another one, or there is no goal; `absent`: there is none to take away. */
export type GoalWritten =
  | { readonly status: 'written'; readonly updatedAt: number; readonly tag: string }
  | { readonly status: 'mismatch' | 'absent' };

/** Keeps learners' goals. @throws ApiError UNAVAILABLE */
export interface GoalStore {
  read(tenant: string, userId: string): Promise<Tagged<StoredGoal> | null>;
  /** Compares, writes and notes the change for ClickHouse in one step. */
  write(write: GoalWrite): Promise<GoalWritten>;
}

/** One skill of a catalogue as it is to be. */
export interface SkillWrite {
  readonly skillId: string;
  /** Null: it is taken off the catalogue. */
  readonly setting: SkillSetting | null;
  /** Revisions of the entry, as text, that it may replace (0: none yet); null: any. */
  readonly ifRevision: readonly string[] | null;
}

/** `full`: the tenant knows as many skills as it may; `removed`: it is not in the catalogue any more. */
export type SkillWritten =
  | { readonly status: 'written'; readonly entry: SkillEntry }
  | { readonly status: 'mismatch' | 'full' | 'removed' };

/** Keeps catalogues; `ModelReader` shows them. @throws ApiError UNAVAILABLE */
export interface CatalogueStore {
  /** Compares, writes and notes the change for ClickHouse in one step; from then on everybody sees it. */
  put(tenant: string, write: SkillWrite, now: number): Promise<SkillWritten>;
}

/** A counted answer as it is stored. */
export interface StoredAttempt extends CountedAnswer {
  /** Unix milliseconds. */
  readonly occurredAt: number;
  /** Number of the answer within the learner, all skills together. */
  readonly learnerSeq: number;
  readonly questionDifficulty: number | null;
  readonly pCorrect: number;
  readonly parametersVersion: number;
  /** Earlier answers of the learner that are not stored. */
  readonly missingBefore: number;
}

/** Which answers of a learner on a skill are asked for. */
export interface AttemptQuery {
  readonly tenant: string;
  readonly userId: string;
  readonly skillId: string;
  /** Number of the learner's last answer that counts. */
  readonly upTo: number;
  /** The newest that many. */
  readonly atMost: number;
}

/** Reads stored answers back. @throws what the store says, when it is away or does not answer in a few seconds */
export interface AttemptHistory {
  /**
   * The newest answers, oldest first, how many of the learner on the skill there are, and how many more there were until
   * they were dropped for their age. Null where too many of the tenant are read already.
   */
  ofSkill(query: AttemptQuery): Promise<{
    readonly attempts: readonly StoredAttempt[];
    readonly stored: number;
    readonly archived: number;
  } | null>;
}

export const allScopes = ['read', 'write', 'admin', 'operator'] as const;
export type Scope = (typeof allScopes)[number];
/** What a key gets that asks for none. `operator` reaches beyond its tenant, so it is given by name only. */
export const defaultScopes: readonly Scope[] = ['read', 'write', 'admin'];

/** What a caller's key allows. */
export interface Grant {
  /** SHA-256 of the key, hexadecimal: names the key without telling it. */
  readonly keyHash: string;
  readonly tenant: string;
  /** Null: no limit. */
  readonly requestsPerMinute: number | null;
  readonly scopes: readonly Scope[];
  /** The development key, which works on the machine itself only. */
  readonly development: boolean;
}

/** Knows the keys. @throws ApiError UNAVAILABLE when a key cannot be looked up */
export interface KeyRing {
  /** Null for a key that is not in store. */
  find(keyHash: string): Promise<Grant | null>;
}

/** Counts requests against quotas. @throws ApiError UNAVAILABLE */
export interface QuotaCounter {
  /** Takes an amount from the window that is open, or opens one; exact across all processes. */
  take(keyHash: string, amount: number): Promise<{ taken: number; endsInMs: number }>;
}
