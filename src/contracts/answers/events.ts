import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import { IsDateTime } from 'typebox/format';
import type { NonEmpty } from '../../domain/base/common.js';
import type { Problem } from '../../errors.js';
import { Id } from '../schema/ids.js';
import { optionalNullable } from '../schema/validate.js';

export const maxQuestionSkills = 10;

/** Exactly one is required (`findSkillProblem`). */
export const questionSkillFields = {
  skill_id: optionalNullable(Id),
  skill_ids: optionalNullable(
    Type.Array(Id, {
      minItems: 1,
      maxItems: maxQuestionSkills,
      uniqueItems: true,
      description: 'All skills that the question needs, instead of `skill_id`.',
    }),
  ),
};

/** Unknown fields are ignored. */
export const LearningEvent = Type.Object(
  {
    user_id: Id,
    ...questionSkillFields,
    is_correct: Type.Boolean(),
    time_spent_seconds: optionalNullable(
      Type.Integer({ minimum: 0, maximum: 86_400, description: 'Whole seconds.' }),
    ),
    confidence_score: optionalNullable(Type.Integer({ minimum: 1, maximum: 5 })),
    question_difficulty: optionalNullable(Type.Number({ minimum: -3, maximum: 3 })),
    event_id: optionalNullable(Id),
    item_id: optionalNullable(Id),
    occurred_at: optionalNullable(
      Type.String({ description: 'RFC 3339 time, from 1970 to at most 5 minutes in the future.' }),
    ),
  },
  {
    description: 'One answer of a learner. Needs exactly one of `skill_id` and `skill_ids`.',
    examples: [
      {
        user_id: 'ada',
        skill_id: 'linear-equations',
        is_correct: true,
        time_spent_seconds: 45,
        event_id: 'a-1',
      },
      {
        user_id: 'ben',
        skill_ids: ['linear-equations', 'word-problems'],
        is_correct: false,
        event_id: 'b-1',
      },
    ],
  },
);
export type LearningEvent = Static<typeof LearningEvent>;
export const learningEventCheck = Compile(LearningEvent);

type SkillFields = { readonly skill_id?: unknown; readonly skill_ids?: unknown };

/** Null: exactly one of the fields is present. */
export function findSkillProblem({ skill_id = null, skill_ids = null }: SkillFields): Problem | null {
  if (skill_id !== null && skill_ids !== null)
    return { path: 'skill_ids', message: 'must be absent if skill_id is present' };
  if (skill_id !== null || skill_ids !== null) return null;
  return { path: 'skill_id', message: 'is required, unless skill_ids is present' };
}

/** @param event without a skill problem */
export const listSkillIds = ({
  skill_id,
  skill_ids,
}: Pick<LearningEvent, 'skill_id' | 'skill_ids'>): NonEmpty<string> =>
  (skill_ids ?? [skill_id]) as [string, ...string[]];

export const maxBatchEvents = 1000;

const EventBatch = Type.Object({
  events: Type.Array(Type.Unknown(), { description: `1 to ${maxBatchEvents} events.` }),
});
export const eventBatchCheck = Compile(EventBatch);

/** For the OpenAPI document: a batch with invalid events is accepted in part. */
export const BatchRequest = Type.Object({
  events: Type.Array(LearningEvent, { minItems: 1, maxItems: maxBatchEvents }),
});
export const EventLines = Type.String({
  contentMediaType: 'application/x-ndjson',
  description: `1 to ${maxBatchEvents} events, one JSON object per line. Blank lines are skipped.`,
  examples: [
    '{"user_id":"ada","skill_id":"inference","is_correct":true,"event_id":"a-2"}\n{"user_id":"ben","skill_ids":["inference","vocabulary"],"is_correct":false,"event_id":"b-2"}\n',
  ],
});

const skillResultFields = {
  mastery_before: Type.Number({ minimum: 0, maximum: 1 }),
  mastery_after: Type.Number({ minimum: 0, maximum: 1 }),
  velocity: Type.Number({ minimum: -1, maximum: 1, description: 'mastery_after minus mastery_before.' }),
  plateau_detected: Type.Boolean(),
  total_attempts: Type.Integer({ minimum: 1 }),
  correct_attempts: Type.Integer({ minimum: 0 }),
};

export const LearningEventResult = Type.Object({
  ...skillResultFields,
  recommendation: Type.Union([Type.String({ maxLength: 200 }), Type.Null()]),
  recommendation_code: Type.Optional(
    Type.String({ description: 'Code of the recommendation; absent if recommendation is null.' }),
  ),
  skills: Type.Optional(
    Type.Array(Type.Object({ skill_id: Id, ...skillResultFields }), {
      description:
        'If the event has `skill_ids`: each skill, in that order. The other fields are of the first.',
    }),
  ),
});

const futureToleranceMs = 5 * 60_000;

/** @returns Unix milliseconds; null if invalid. A leap second becomes the second before. */
export function parseTime(text: string): number | null {
  if (!strictShape.test(text) || !IsDateTime(text)) return null;
  const ms = Date.parse(
    text
      .toUpperCase()
      .replace(/:60(?=[.Z+-])/, ':59')
      .replace(/(\.\d{3})\d+/, '$1'),
  );
  return Number.isNaN(ms) ? null : ms;
}

/** Shortest spelling in UTC. Most clients send it. */
const shortestTime = /^[^.t]{17}[0-5]\d(\.(?!000)\d{3})?Z$/;

/** One spelling for each instant. @param text valid, with the instant `ms` in Unix milliseconds */
export const normalizeTime = (text: string, ms: number): string =>
  shortestTime.test(text) ? text : new Date(ms).toISOString().replace('.000Z', 'Z');

/** `IsDateTime` also accepts later formats than RFC 3339. */
const strictShape = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i;

export function findTimeProblem(ms: number | null, now: number): string | null {
  if (ms === null) return 'must be an RFC 3339 time, for example 2026-05-31T12:00:00Z';
  if (ms < 0) return 'must be in 1970 or later';
  if (ms > now + futureToleranceMs) return 'must be at most 5 minutes in the future';
  return null;
}
