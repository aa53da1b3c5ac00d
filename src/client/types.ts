/** What the API takes and answers. Written by test/support/client-types.ts from the schemas of the service. */

/** One answered question of one learner on one skill */
export type Answer = {
  readonly user_id: Id;
  readonly skill_id: Id;
  readonly is_correct: boolean;
  readonly time_spent_seconds?: number | null | undefined;
  readonly confidence_score?: number | null | undefined;
  readonly question_difficulty?: number | null | undefined;
  readonly event_id?: Id | null | undefined;
  readonly item_id?: Id | null | undefined;
  /** RFC 3339, 1970 or later, at most 5 minutes ahead */
  readonly occurred_at?: string | null | undefined;
};

export type GoalSetting = {
  /** Total score */
  readonly target_score: number;
  /** YYYY-MM-DD, a UTC day, today or later */
  readonly target_date?: string | null | undefined;
};

export type SkillSetting = {
  /** For people */
  readonly name?: string | null | undefined;
  /** Absent: counts half in each */
  readonly section?: 'math' | 'rw' | null | undefined;
  /** Within the section; absent: 1 */
  readonly weight?: number | null | undefined;
  readonly parameters?:
    | {
        readonly p_init?: number | undefined;
        readonly p_learn?: number | undefined;
        readonly p_guess?: number | undefined;
        readonly p_slip?: number | undefined;
        /** Chance of losing mastery at an answer; absent: 0 */
        readonly p_forget?: number | undefined;
        readonly source?: 'default' | 'fitted' | 'manual' | undefined;
      }
    | null
    | undefined;
};

export type ClassRequest = {
  readonly user_ids: readonly Id[];
  readonly days?: number | null | undefined;
  readonly confidence_level?: number | null | undefined;
  readonly locale?: 'en' | null | undefined;
};

export type ClassMasteryRequest = {
  readonly user_ids: readonly Id[];
  readonly skill_ids?: readonly Id[] | null | undefined;
};

export type Plan = {
  readonly answers_per_day: number;
  readonly skills?: readonly Id[] | null | undefined;
  readonly days?: number | null | undefined;
  readonly confidence_level?: number | null | undefined;
  /** Total score */
  readonly target_score?: number | null | undefined;
};

export type NextItemsRequest = {
  readonly items: readonly {
    readonly item_id?: Id | null | undefined;
    readonly skill_id: Id;
    /** As the answers on the item are sent: what is learned of an item counts beside it */
    readonly question_difficulty?: number | null | undefined;
  }[];
  readonly limit?: number | null | undefined;
  /** Success rate aimed at */
  readonly target?: number | null | undefined;
};

export type WebhookSetting = {
  readonly url: string;
  readonly event_types: EventTypes;
  /** For people */
  readonly description?: string | null | undefined;
};

export type WebhookChange = {
  readonly url?: string | null | undefined;
  readonly event_types?: EventTypes | null | undefined;
  /** For people */
  readonly description?: string | null | undefined;
  readonly enabled?: boolean | null | undefined;
};

export type SecretRotation = {
  readonly revoke_old?: boolean | null | undefined;
};

export type KeySetting = KeyChange & {
  readonly scopes?: readonly ('read' | 'write' | 'admin' | 'operator')[] | null | undefined;
  readonly tenant?: Tenant | null | undefined;
};

export type KeyChange = {
  /** Quota of requests */
  readonly requests_per_minute?: number | null | undefined;
  /** True: no quota */
  readonly unlimited?: boolean | null | undefined;
};

export type XapiMappingSetting = {
  readonly home_page?: string | null | undefined;
  readonly skill_from?:
    | 'parent'
    | 'grouping'
    | 'category'
    | {
        readonly extension: string;
      }
    | null
    | undefined;
  readonly skills?:
    | {
        readonly [field: string]: Id;
      }
    | null
    | undefined;
  readonly success_threshold?: number | null | undefined;
  /** What becomes of an answer without a skill */
  readonly unmapped?: 'reject' | 'ignore' | null | undefined;
};

export type Rollback = {
  /** 0: nothing fitted, the defaults */
  readonly version: number;
  /** Absent: the key's */
  readonly tenant?: string | null | undefined;
};

export type PredictionQuery = {
  readonly days?: number | undefined;
  readonly confidence_level?: number | undefined;
  readonly locale?: 'en' | undefined;
};

export type VelocityQuery = {
  readonly skill_id?: Id | undefined;
  readonly days?: number | undefined;
};

export type ReliabilityQuery = {
  readonly skill_id?: Id | undefined;
  readonly days?: number | undefined;
};

export type LearnersQuery = PageQuery & {
  /** What the ids begin with, byte for byte; absent: all learners */
  readonly prefix?: string | undefined;
};

export type LiveQuery = {
  /** The stream ends after so many; absent: never by itself */
  readonly events?: number | undefined;
};

export type PageQuery = {
  /** Most entries of a page; absent: 100, of mastery all */
  readonly limit?: number | undefined;
  /** next_cursor of the page before */
  readonly cursor?: string | undefined;
};

export type KeyQuery = PageQuery & {
  readonly tenant?: Tenant | undefined;
};

/** Identifier: 1 to 128 characters without control characters, compared byte for byte */
export type Id = string;

/** RFC 3339, UTC */
export type Time = string;

/** YYYY-MM-DD, a UTC day */
export type Day = string;

/** Of A-Za-z0-9._~- */
export type Tenant = string;

/** What is wrong, and where */
export type ErrorObject = {
  readonly code:
    | 'INVALID_REQUEST'
    | 'UNAUTHORIZED'
    | 'FORBIDDEN'
    | 'NOT_FOUND'
    | 'USER_NOT_FOUND'
    | 'SKILL_NOT_FOUND'
    | 'GOAL_NOT_FOUND'
    | 'WEBHOOK_NOT_FOUND'
    | 'METHOD_NOT_ALLOWED'
    | 'CONFLICT'
    | 'PRECONDITION_FAILED'
    | 'PAYLOAD_TOO_LARGE'
    | 'UNSUPPORTED_MEDIA_TYPE'
    | 'IDEMPOTENCY_KEY_REUSED'
    | 'LIMIT_EXCEEDED'
    | 'TOO_LATE'
    | 'RATE_LIMITED'
    | 'INTERNAL'
    | 'UNAVAILABLE';
  readonly message: string;
  readonly details?: readonly {
    readonly path: string;
    readonly message: string;
  }[];
};

export type AnswerResult = {
  readonly mastery_before: number;
  readonly mastery_after: number;
  /** mastery_after minus mastery_before */
  readonly velocity: number;
  readonly plateau_detected: boolean;
  readonly total_attempts: number;
  readonly correct_attempts: number;
  readonly recommendation: string | null;
  /** The recommendation for machines, only where there is one */
  readonly recommendation_code?: string;
};

export type BatchResult = {
  readonly accepted: number;
  readonly rejected: number;
  readonly results: readonly (
    | {
        /** Of the event in the batch */
        readonly index: number;
        readonly status: 200;
        readonly replayed?: true;
        readonly data: AnswerResult;
      }
    | {
        /** Of the event in the batch */
        readonly index: number;
        readonly status: number;
        readonly error: ErrorObject;
      }
  )[];
};

export type Interval = {
  readonly low: number;
  readonly high: number;
};

export type ConfidenceIntervals = {
  readonly math: Interval;
  readonly rw: Interval;
  readonly total: {
    readonly low: number;
    readonly high: number;
  };
};

export type GoalTracking = {
  /** Total score */
  readonly target_score: number;
  readonly target_date: Day | null;
  /** Set or asked for; false: a default that nobody chose */
  readonly is_set: boolean;
  readonly days_to_goal: number | null;
  readonly progress_percent: number;
  readonly on_track: boolean;
  readonly goal_probability: number;
};

export type Scores = {
  readonly current_math: number;
  readonly current_rw: number;
  readonly current_total: number;
  readonly confidence_intervals: ConfidenceIntervals;
  readonly confidence_level: number;
  readonly goal_tracking: GoalTracking;
};

export type Practice = {
  readonly answers_per_day: number;
  readonly active_days_14: number;
};

export type Prediction = Scores & {
  readonly predicted_math_in_30_days: number;
  readonly predicted_rw_in_30_days: number;
  readonly predicted_total_in_30_days: number;
  readonly expected_accuracy: {
    readonly share: number;
    readonly low: number;
    readonly high: number;
    readonly answers: number;
  };
  readonly recommendations: readonly string[];
  readonly recommendation_codes: readonly {
    readonly code: string;
    readonly skill_id: Id | null;
  }[];
  readonly recommendations_reason: string | null;
  readonly forecast_days: number;
  readonly data_points: {
    readonly math: number;
    readonly rw: number;
  };
  readonly assumed_practice: {
    readonly math: Practice;
    readonly rw: Practice;
  };
  readonly reliability: {
    readonly math: number;
    readonly rw: number;
  };
  readonly [field: `predicted_${'math' | 'rw'}_in_${number}_days`]: number;
  readonly [field: `predicted_total_in_${number}_days`]: number;
};

export type ClassPredictions = {
  readonly found: number;
  readonly missing: number;
  readonly failed: number;
  readonly results: readonly (
    | {
        readonly index: number;
        readonly user_id: Id;
        readonly status: 200;
        readonly data: Prediction;
      }
    | {
        readonly index: number;
        readonly user_id: Id;
        readonly status: 404 | 500;
        readonly error: ErrorObject;
      }
  )[];
};

export type WhatIf = Scores & {
  readonly user_id: Id;
  readonly plan: {
    readonly answers_per_day: number;
    readonly skills: readonly Id[] | null;
    readonly days: number;
  };
  readonly without_plan: {
    readonly [field: `predicted_${'math' | 'rw'}_in_${number}_days`]: number;
    readonly [field: `predicted_total_in_${number}_days`]: number;
  };
  readonly needed_answers_per_day: number | null;
  readonly needed_within_days: number | null;
  readonly [field: `predicted_${'math' | 'rw'}_in_${number}_days`]: number;
  readonly [field: `predicted_total_in_${number}_days`]: number;
};

export type NextItems = {
  readonly user_id: Id;
  readonly target: number;
  /** Best first */
  readonly items: readonly {
    /** Of the item in the request */
    readonly index: number;
    readonly item_id: Id | null;
    readonly skill_id: Id;
    readonly p_correct: number;
    readonly mastery: number;
    /** Points of its section by an hour on the skill, as if there were enough of it for an hour */
    readonly expected_gain: number;
    readonly reason_code:
      | 'ANSWERED_RECENTLY'
      | 'REVIEW_DUE'
      | 'MASTERED'
      | 'NEW_SKILL'
      | 'RIGHT_LEVEL'
      | 'HARDER_THAN_TARGET'
      | 'EASIER_THAN_TARGET';
    readonly reason: string;
  }[];
};

export type LearnerSkill = {
  readonly skill_id: Id;
  readonly section: 'math' | 'rw' | null;
  readonly expected_accuracy: number;
  readonly expected_low: number;
  readonly expected_high: number;
  readonly mastery: number;
  readonly mastery_at_last_attempt: number;
  readonly mastered: boolean;
  readonly plateau_detected: boolean;
  readonly total_attempts: number;
  readonly correct_attempts: number;
  readonly efficiency_index: number | null;
  readonly efficiency_reason: 'too_few_times' | 'rapid_answers' | null;
  readonly correct_per_minute: number | null;
  readonly confidence_bias: number | null;
  readonly last_attempt_at: Time;
};

export type Mastery = {
  readonly user_id: Id;
  readonly skills: readonly LearnerSkill[];
  readonly next_cursor: string | null;
};

export type ClassMastery = {
  readonly found: number;
  readonly missing: number;
  readonly failed: number;
  readonly results: readonly (
    | {
        readonly index: number;
        readonly user_id: Id;
        readonly status: 200;
        readonly data: {
          readonly total_attempts: number;
          readonly correct_attempts: number;
          readonly mastered: number;
          readonly last_attempt_at: Time | null;
          readonly plateaus: readonly Id[];
          /** By skill_id */
          readonly expected_accuracy: {
            readonly [field: string]: number;
          };
          /** By skill_id */
          readonly mastery: {
            readonly [field: string]: number;
          };
        };
      }
    | {
        readonly index: number;
        readonly user_id: Id;
        readonly status: 404 | 500;
        readonly error: ErrorObject;
      }
  )[];
};

export type Parameters = {
  readonly p_init: number;
  readonly p_learn: number;
  readonly p_guess: number;
  readonly p_slip: number;
  readonly p_forget: number;
  readonly source: 'default' | 'fitted' | 'manual';
  readonly version: number;
  readonly fitted_at: Time | null;
};

export type SkillMastery = LearnerSkill & {
  readonly user_id: Id;
  readonly explanation?: {
    readonly parameters: Parameters;
    readonly steps:
      | readonly {
          readonly occurred_at: Time;
          readonly learner_seq: number;
          readonly is_correct: boolean;
          readonly question_difficulty: number | null;
          readonly mastery_before_forgetting: number | null;
          readonly forgetting: number | null;
          readonly evidence: number | null;
          readonly learning: number | null;
          readonly mastery_before: number;
          readonly mastery_after: number;
          readonly p_correct: number;
          readonly parameters_version: number;
        }[]
      | null;
    readonly pending_attempts: number | null;
    readonly source_lag_seconds: number | null;
    readonly note: string | null;
    readonly forgetting_since_last_attempt: number;
    readonly next: {
      readonly if_correct: {
        readonly mastery: number;
        readonly change: number;
      };
      readonly if_wrong: {
        readonly mastery: number;
        readonly change: number;
      };
    };
    readonly p_correct: number;
    readonly log_odds: number;
    readonly recent_change: string | null;
    readonly terms: readonly {
      readonly name: string;
      readonly logits: number;
      readonly text: string;
    }[];
  };
};

export type Velocity = {
  readonly user_id: Id;
  readonly skill_id: Id | null;
  readonly days: number;
  readonly velocity_per_attempt: number | null;
  readonly velocity_per_day: number | null;
  readonly velocity_per_day_low: number | null;
  readonly velocity_per_day_high: number | null;
  readonly velocity_per_week: number | null;
  readonly velocity_7d: number | null;
  readonly acceleration: number | null;
  readonly momentum: number | null;
  readonly momentum_label: 'building' | 'steady' | 'fading' | null;
  readonly plateaus: readonly Id[];
  readonly answers_per_day: number | null;
  readonly source_lag_seconds: number | null;
  readonly active_days: number | null;
  readonly accuracy_7d: number | null;
  readonly accuracy_28d: number | null;
  readonly series:
    | readonly {
        readonly date: Day;
        readonly mastery: number | null;
        readonly attempts: number;
        readonly correct: number;
      }[]
    | null;
};

export type Goal = {
  readonly user_id: Id;
  readonly updated_at: Time;
  /** Total score */
  readonly target_score: number;
  readonly target_date: Day | null;
};

export type DeletedGoal = {
  readonly user_id: Id;
  readonly updated_at: Time;
  readonly target_score: null;
  readonly target_date: null;
};

export type ListedSkill = {
  readonly skill_id: Id;
  readonly section: 'math' | 'rw' | null;
  readonly name: string | null;
  readonly weight: number;
  readonly parameters: Parameters;
  readonly origin: 'defaults' | 'tenant_prior' | 'fit' | 'manual';
  readonly learners: number;
  readonly answers: number;
  readonly rapid_threshold_seconds: number;
  readonly typical_seconds: number | null;
  readonly updated_at: Time | null;
};

export type Skill = ListedSkill & {
  readonly model_version: number;
};

export type SkillPage = {
  readonly model_version: number;
  readonly skills: readonly ListedSkill[];
  readonly next_cursor: string | null;
};

export type DeletedSkill = {
  readonly skill_id: Id;
  readonly answers: number;
};

export type ListedLearner = {
  readonly user_id: Id;
  readonly total_attempts: number;
  readonly correct_attempts: number;
  readonly skills: number;
  readonly last_day: Day;
};

export type LearnerPage = {
  readonly source_lag_seconds: number | null;
  readonly learners: readonly ListedLearner[];
  readonly next_cursor: string | null;
};

export type SkillStatisticsPage = {
  readonly source_lag_seconds: number | null;
  readonly skills: readonly {
    readonly skill_id: Id;
    readonly learners: number;
    readonly answers: number;
    readonly accuracy: number;
    readonly mean_p_correct: number;
    readonly plateau_share: number;
    readonly velocity_per_attempt: number;
    readonly efficiency_index: number | null;
    readonly correct_per_minute: number | null;
  }[];
  readonly next_cursor: string | null;
};

export type SkillStatistics = {
  readonly skill_id: Id;
  readonly learners: number;
  readonly answers: number;
  readonly accuracy: number;
  readonly mean_p_correct: number;
  readonly plateau_share: number;
  readonly velocity_per_attempt: {
    readonly q1: number;
    readonly median: number;
    readonly q3: number;
  };
  readonly learning_curve: readonly {
    readonly attempt: number;
    /** Who came so far: later steps tell of those who went on */
    readonly learners: number;
    readonly accuracy: number;
    readonly low: number;
    readonly high: number;
    readonly p_correct: number;
    readonly mastery: number;
  }[];
  readonly cohorts: readonly {
    readonly cohort: Day;
    readonly week: number;
    readonly learners: number;
    readonly answers: number;
    readonly accuracy: number;
    readonly mean_mastery: number;
  }[];
  readonly source_lag_seconds: number | null;
};

export type SkillItem = {
  readonly item_id: Id;
  readonly learners: number;
  readonly answers: number;
  readonly accuracy: number;
  readonly expected: number;
  readonly p_correct: number;
  readonly beyond: number;
  readonly low: number;
  readonly high: number;
  readonly median_seconds: number | null;
  readonly sure_and_wrong: number | null;
  readonly misleading: boolean | null;
};

export type SkillItemPage = {
  readonly skill_id: Id;
  readonly source_lag_seconds: number | null;
  readonly items: readonly SkillItem[];
  readonly next_cursor: string | null;
};

export type Attempt = {
  readonly learner_seq: number;
  readonly parameters_version: number;
  readonly model_version: number;
  readonly skill_id: Id;
  readonly event_id: Id | null;
  readonly item_id: Id | null;
  readonly is_correct: boolean;
  readonly plateau_detected: boolean;
  readonly time_spent_seconds: number | null;
  readonly confidence_score: number | null;
  readonly question_difficulty: number | null;
  readonly occurred_at: Time;
  readonly received_at: Time;
  readonly mastery_before: number;
  readonly mastery_after: number;
  readonly p_correct: number;
  readonly recommendation_code: string | null;
};

export type AttemptPage = {
  readonly user_id: Id;
  readonly total_attempts: number;
  readonly missing: number;
  readonly attempts: readonly Attempt[];
  readonly next_cursor: string | null;
};

export type SkillAnswer = Attempt & {
  readonly expected_accuracy: number;
  readonly expected_low: number | null;
  readonly expected_high: number | null;
};

export type SkillAnswerPage = {
  readonly user_id: Id;
  readonly skill_id: Id;
  readonly total_attempts: number;
  readonly pending_attempts: number;
  readonly source_lag_seconds: number | null;
  readonly answers: readonly SkillAnswer[];
  readonly next_cursor: string | null;
};

export type TakenBack = {
  readonly user_id: Id;
  readonly event_id: Id;
  readonly skill_id: Id;
  readonly total_attempts: number;
  readonly skill: LearnerSkill | null;
};

export type BegunErasure = {
  readonly erasure_id: string;
  /** Path of GET /api/v1/erasures/{erasure_id} */
  readonly status_url: string;
};

export type ListedErasure = {
  readonly erasure_id: string;
  /** pending: answers of before wait for ClickHouse; running: they are deleted, the rest is to be proven */
  readonly status: 'pending' | 'running' | 'done';
  readonly requested_at: Time;
  readonly done_at: Time | null;
};

export type Erasure = ListedErasure & {
  /** What the request itself took out of Redis: fields of the learner, remembered items */
  readonly removed: {
    readonly records: number;
    readonly items: number;
  };
  /** Rows, of daily sums the answers that they count */
  readonly places: readonly {
    /** Table in ClickHouse */
    readonly place: string;
    readonly before: number;
    readonly after: number | null;
  }[];
  readonly proof: {
    /** Its parameters are those below and user_id, which is not kept */
    readonly query: string;
    readonly parameters: {
      readonly [field: string]: string | number;
    };
  } | null;
};

/** Types of events, or * alone for all of them */
export type EventTypes = readonly (
  | 'mastery.reached'
  | 'plateau.detected'
  | 'plateau.ended'
  | 'goal.reached'
  | 'goal.at_risk'
  | 'model.published'
  | 'erasure.completed'
  | '*'
)[];

export type OwnKey = {
  /** The first 12 characters of its SHA-256 */
  readonly key_id: string;
  readonly tenant: Tenant;
  readonly scopes: readonly ('read' | 'write' | 'admin' | 'operator')[];
  readonly requests_per_minute: number | null;
  /** Works on the machine of the service only */
  readonly development: boolean;
  readonly created_at: Time;
};

export type Key = OwnKey & {
  readonly revoked_at: Time | null;
};

export type CreatedKey = Key & {
  /** Shown here and nowhere else */
  readonly key: string;
};

export type KeyPage = {
  readonly keys: readonly Key[];
  readonly next_cursor: string | null;
};

export type ErasurePage = {
  readonly erasures: readonly ListedErasure[];
  readonly next_cursor: string | null;
};

export type ParkedPage = {
  readonly rows: readonly {
    readonly stream: string;
    readonly id: string;
    readonly reason: string;
    readonly tenant: Tenant | null;
    readonly parked_at: Time;
  }[];
  readonly next_cursor: string | null;
};

export type Redriven = {
  readonly moved: number;
  readonly stayed: number;
  readonly erased: number;
};

export type LastAudit = {
  readonly last: {
    readonly at: Time;
    readonly seconds: number;
    readonly from: Day;
    readonly to: Day;
    readonly accepted: number;
    readonly removed: number;
    readonly stored: number;
    readonly waiting: number;
    readonly parked: number;
    readonly raw: number;
    /** The first 200 */
    readonly mismatches: readonly {
      readonly kind: string;
      readonly tenant: string;
      readonly meaning: string;
      /** YYYY-MM-DD, or all days */
      readonly day: string;
      readonly partition: number | null;
      readonly place: string | null;
      readonly expected: number;
      readonly found: number;
      /** A query for analysts */
      readonly look: string;
    }[];
    readonly mismatches_by_kind: {
      readonly [field: string]: number;
    };
    /** The first 200 reasons */
    readonly not_compared: readonly string[];
    readonly not_compared_count: number;
  } | null;
};

export type Deployment = {
  readonly version: string;
  readonly deployment_id: string;
  readonly node_version: string;
  readonly redis_version: string;
  readonly created_at: Time;
  readonly partitions: number;
  readonly schema_version: number | null;
  readonly clickhouse_version: string | null;
};

export type Webhook = {
  readonly webhook_id: string;
  readonly url: string;
  readonly event_types: EventTypes;
  /** For people */
  readonly description: string | null;
  readonly enabled: boolean;
  readonly disabled_reason: 'request' | 'gone' | 'failing' | 'undelivered' | 'restored' | null;
  readonly created_at: Time;
};

export type WebhookWithSecret = Webhook & {
  /** Shown here and nowhere else */
  readonly secret: string;
};

export type WebhookPage = {
  readonly webhooks: readonly Webhook[];
  readonly next_cursor: string | null;
};

export type DeletedWebhook = {
  readonly webhook_id: string;
};

export type SentMessage = {
  /** The header webhook-id */
  readonly message_id: string;
};

export type Delivery = {
  /** The header webhook-id */
  readonly message_id: string;
  readonly type:
    | 'mastery.reached'
    | 'plateau.detected'
    | 'plateau.ended'
    | 'goal.reached'
    | 'goal.at_risk'
    | 'model.published'
    | 'erasure.completed'
    | 'webhook.test';
  readonly status: 'pending' | 'delivered' | 'failed';
  readonly tries: number;
  readonly last_status: number | null;
  /** Why the last try had no response */
  readonly last_error: string | null;
  readonly next_try_at: Time | null;
  readonly created_at: Time;
};

export type DeliveryPage = {
  readonly webhook_id: string;
  readonly deliveries: readonly Delivery[];
  readonly next_cursor: string | null;
};

export type SkillEvent = {
  readonly user_id: Id;
  readonly skill_id: Id;
  readonly event_id: Id | null;
  readonly mastery_after: number;
  readonly total_attempts: number;
  readonly correct_attempts: number;
  readonly occurred_at: Time;
};

export type GoalEvent = {
  readonly user_id: Id;
  /** Total score */
  readonly target_score: number;
  readonly target_date: Day | null;
  readonly current_total: number;
  readonly predicted_total: number;
  readonly goal_probability: number;
};

/** Data of the messages that endpoints receive, by type */
export type WebhookData = {
  readonly 'mastery.reached': SkillEvent;
  readonly 'plateau.detected': SkillEvent;
  readonly 'plateau.ended': SkillEvent;
  readonly 'goal.reached': GoalEvent;
  readonly 'goal.at_risk': GoalEvent;
  readonly 'model.published': {
    readonly version: number;
    readonly based_on: number;
    readonly published_at: Time;
  };
  readonly 'erasure.completed': {
    readonly erasure_id: string;
  };
  readonly 'webhook.test': {
    readonly webhook_id: string;
  };
};

export type ModelVersionPage = {
  readonly in_force: number;
  readonly versions: readonly {
    readonly change: number;
    readonly version: number;
    readonly action: 'fit' | 'rollback';
    /** Version that was in force before; 0: none */
    readonly based_on: number;
    readonly published_at: Time;
    readonly in_force: boolean;
    /** Whether it can be put into force again */
    readonly kept: boolean;
    readonly skills: number | null;
    readonly skills_published: number | null;
    readonly answers: number | null;
    readonly learners: number | null;
    readonly old_log_loss: number | null;
    readonly new_log_loss: number | null;
    readonly summary: string;
  }[];
  readonly next_cursor: string | null;
};

export type ModelVersion = {
  readonly version: number;
  readonly skills: readonly {
    readonly skill_id: Id;
    readonly published: boolean;
    readonly parameters_version: number;
    readonly p_init: number;
    readonly p_learn: number;
    readonly p_guess: number;
    readonly p_slip: number;
    readonly p_forget: number;
    readonly answers: number;
    readonly learners: number;
    readonly old_log_loss: number | null;
    readonly new_log_loss: number | null;
    /** Why its parameters are those that were fitted, or why not */
    readonly reason: string;
  }[];
  readonly next_cursor: string | null;
};

export type UsedVersion = {
  readonly version: number;
};

export type Reliability = {
  readonly days: number;
  readonly skill_id: Id | null;
  readonly answers: number;
  readonly accuracy: number | null;
  readonly mean_p_correct: number | null;
  readonly brier: number | null;
  readonly log_loss: number | null;
  /** Tenths of p_correct with answers; low and high: 95 % interval of accuracy */
  readonly bins: readonly {
    readonly from: number;
    readonly to: number;
    readonly p_correct: number;
    readonly accuracy: number;
    readonly low: number;
    readonly high: number;
    readonly answers: number;
  }[];
  readonly source_lag_seconds: number | null;
};

export type Coverage = {
  readonly bands: readonly {
    readonly forecast_days: number;
    readonly history_from: number;
    readonly history_to: number | null;
    readonly cases: number;
    readonly learners: number;
    readonly answers: number;
    readonly coverage_50: number;
    readonly coverage_80: number;
    readonly coverage_95: number;
    readonly mean_width_50: number;
    readonly mean_width_80: number;
    readonly mean_width_95: number;
    readonly expected_share: number;
    readonly observed_share: number;
    readonly mean_squared_error: number;
    readonly brier: number;
  }[];
};

export type LiveFigures = {
  readonly at: Time;
  /** API processes that the figures are of */
  readonly processes: number;
  readonly answers_per_second: number | null;
  readonly requests_per_second: number | null;
  /** Per second, by the status; null, as the other rates, where nobody has looked a moment before */
  readonly errors: {
    readonly [field: string]: number;
  } | null;
  readonly latency_ms: {
    readonly p50: number;
    readonly p90: number;
    readonly p99: number;
  } | null;
  readonly outbox_length: number | null;
  readonly journal_length: number | null;
  readonly parked_rows: number | null;
  readonly lanes_waiting: number | null;
  readonly connections_open: number | null;
  readonly oldest_pending_seconds: number | null;
  readonly redis_up: boolean | null;
  readonly clickhouse_up: boolean | null;
  readonly redis_memory: {
    readonly used: number;
    readonly limit: number | null;
  } | null;
};

export type XapiMapping = {
  readonly home_page: string | null;
  readonly skill_from:
    | 'parent'
    | 'grouping'
    | 'category'
    | {
        readonly extension: string;
      };
  readonly skills: {
    readonly [field: string]: Id;
  };
  readonly success_threshold: number | null;
  /** What becomes of an answer without a skill */
  readonly unmapped: 'reject' | 'ignore';
};

export type Health = {
  readonly status: 'ok' | 'degraded' | 'down';
  readonly version: string;
  readonly uptime_seconds: number;
  readonly idempotency_window_seconds: number;
  readonly idempotency_min_window_seconds: number;
  readonly checks: {
    readonly redis: {
      readonly status: 'ok' | 'failing';
      readonly reason?: string;
    };
    readonly clickhouse: {
      readonly status: 'ok' | 'failing';
      readonly reason?: string;
    };
    readonly workers: {
      readonly status: 'ok' | 'failing';
      readonly reason?: string;
      readonly threads: number;
      readonly waiting: number;
    };
    readonly pipeline: {
      readonly status: 'ok' | 'failing';
      readonly reason?: string;
      readonly outbox_length: number | null;
      readonly erasures_due: number | null;
      readonly journal_length: number | null;
      readonly parked: number | null;
      readonly oldest_pending_seconds: number | null;
    };
  };
};

export type Liveness = {
  readonly status: 'ok' | 'failing';
  readonly reasons: readonly string[];
};

export type Readiness = {
  readonly status: 'ready' | 'not ready';
  readonly reasons: readonly string[];
};

/** What endpoints are sent; later versions may send other types and fields */
export type WebhookMessage = {
  [Type in keyof WebhookData]: {
    readonly type: Type;
    readonly timestamp: Time;
    readonly data: WebhookData[Type];
  };
}[keyof WebhookData];
