/**
 * Journal rows: facts for ClickHouse that only Redis has, encoded once as TabSeparated. A Redis script
 * prepends revision and time of goals and skills.
 */
import type { SkillSetting } from '../../domain/catalogue/catalogue.js';
import type { AccuracyForecast } from '../../domain/prediction/accuracy-model.js';
import type { IntervalFactors } from '../../domain/prediction/interval-calibration.js';
import type { ScoreForecast, Scores } from '../../domain/score/scores.js';
import { maxClockSkewMs } from '../corrections/corrections.js';
import type { GroupSetting, Profile } from '../learners/groups.js';
import type { LearnerId } from '../learners/learner-name.js';
import type { OutboxId } from '../outbox/outbox-ids.js';
import type { WebhookRecord } from '../webhooks/webhooks.js';

/**
 * Field `k` of a journal entry; field `r` is the row. Rows with other columns need a new kind: rows wait
 * across upgrades.
 */
export const journalKinds = [
  ...(['goal', 'skill', 'forecast', 'forecast_2', 'taken_back', 'webhook'] as const),
  ...(['profile', 'group', 'group_member'] as const),
] as const;
export type JournalKind = (typeof journalKinds)[number];

const forecastColumns = [
  ...(['made_at', 'tenant', 'user_id'] as const),
  ...(['forecast_days', 'confidence_level', 'learner_seq'] as const),
  ...(['current_math', 'current_rw', 'current_total'] as const),
  ...(['predicted_math', 'predicted_rw', 'predicted_total'] as const),
  ...(['math_low', 'math_high', 'rw_low', 'rw_high', 'total_low', 'total_high'] as const),
  ...(['target_score', 'goal_probability'] as const),
  ...(['model_version', 'tenant_model_version'] as const),
  ...(['expected_share', 'share_sd'] as const),
  ...(['below_50', 'below_80', 'below_95', 'above_50', 'above_80', 'above_95'] as const),
] as const;

export const journalColumns = {
  goal: ['updated_at', 'tenant', 'user_id', 'target_score', 'target_date'],
  skill: [
    ...(['revision', 'updated_at', 'tenant', 'skill_id', 'name', 'section', 'weight'] as const),
    ...(['p_init', 'p_learn', 'p_guess', 'p_slip', 'p_forget'] as const),
  ],
  /** Written by earlier versions. */
  forecast: forecastColumns,
  forecast_2: [...forecastColumns, 'calibration_below', 'calibration_above', 'accuracy_cases'],
  taken_back: [
    ...(['taken_back_at', 'tenant', 'user_id', 'event_id', 'skill_id', 'learner_seq'] as const),
    ...(['received_at', 'first_answer'] as const),
  ],
  profile: ['updated_at', 'tenant', 'user_id', 'display_name', 'attributes'],
  group: ['updated_at', 'tenant', 'group_id', 'name', 'kind', 'parent_group_id', 'created_at'],
  group_member: ['updated_at', 'tenant', 'user_id', 'group_id', 'is_member'],
  webhook: [
    ...(['updated_at', 'tenant', 'webhook_id', 'url', 'event_types'] as const),
    ...(['description', 'disabled_reason', 'created_at'] as const),
  ],
} as const satisfies Record<JournalKind, readonly string[]>;

export interface GoalChange extends LearnerId {
  /** Null: deleted. */
  readonly targetScore: number | null;
  /** Local day, YYYY-MM-DD. */
  readonly targetDate: string | null;
}

/** Without `updated_at` (Unix milliseconds and a tab). */
export const encodeGoalRow = ({ tenant, userId, targetScore, targetDate }: GoalChange): string =>
  encodeRow([tenant, userId, targetScore, targetDate]);

export interface SkillChange extends SkillSetting {
  readonly tenant: string;
  readonly skillId: string;
}

/** Without `revision` and `updated_at` (Unix milliseconds and a tab). */
export const encodeSkillRow = ({ tenant, skillId, name, section, weight, parameters }: SkillChange): string =>
  encodeRow([
    ...[tenant, skillId, name, section ?? '', weight],
    ...[parameters?.pInit, parameters?.pLearn, parameters?.pGuess, parameters?.pSlip, parameters?.pForget],
  ]);

/** `sd` is on the scale asin(sqrt(share)), where it does not depend on the share. */
export interface ExpectedShare extends Pick<AccuracyForecast, 'expected' | 'sd'> {
  /** Distances to the bounds of the `intervalLevels`, in units of sqrt(sd² + 1 / (4 m)) for m answers. */
  readonly reach: readonly { readonly below: number; readonly above: number }[];
  /** Included in `reach`. */
  readonly factors: IntervalFactors;
  /** Of the accuracy model. */
  readonly cases: number;
}

export const intervalLevels = [0.5, 0.8, 0.95] as const;

export interface ServedForecast extends LearnerId {
  /** Unix milliseconds. */
  readonly madeAt: number;
  /** 1 to 365. */
  readonly days: number;
  /** 0.5 to 0.99. */
  readonly level: number;
  readonly learnerSeq: number;
  readonly current: Scores;
  readonly predicted: Scores;
  readonly intervals: ScoreForecast['intervals'];
  /** Null: no goal. */
  readonly targetScore: number | null;
  readonly goalProbability: number | null;
  /** Version of the formulas (domain/base/formula-version.ts). */
  readonly modelVersion: number;
  /** 0: the defaults. */
  readonly tenantModelVersion: number;
  readonly accuracy: ExpectedShare;
}

export function encodeForecastRow(forecast: ServedForecast): string {
  const { current, predicted, accuracy } = forecast;
  const { math, rw, total } = forecast.intervals;
  return encodeRow([
    ...[forecast.madeAt, forecast.tenant, forecast.userId],
    ...[forecast.days, forecast.level, forecast.learnerSeq],
    ...[current.math, current.rw, current.total],
    ...[predicted.math, predicted.rw, predicted.total],
    ...[math.low, math.high, rw.low, rw.high, total.low, total.high],
    ...[forecast.targetScore, forecast.goalProbability],
    ...[forecast.modelVersion, forecast.tenantModelVersion],
    ...[accuracy.expected, accuracy.sd],
    ...accuracy.reach.map(({ below }) => below),
    ...accuracy.reach.map(({ above }) => above),
    ...[accuracy.factors.below, accuracy.factors.above, accuracy.cases],
  ]);
}

export interface RetractedAnswer extends LearnerId {
  readonly eventId: string;
  readonly skillId: string;
  readonly learnerSeq: number;
  /** Unix milliseconds. */
  readonly receivedAt: number;
  /** Stored response in base64; empty: expired. */
  readonly firstAnswer: string;
}

/** Without `taken_back_at` (Unix milliseconds and a tab). */
export const encodeRetractionRow = (answer: RetractedAnswer): string => {
  const { tenant, userId, eventId, skillId, learnerSeq, receivedAt, firstAnswer } = answer;
  return encodeRow([tenant, userId, eventId, skillId, learnerSeq, receivedAt, firstAnswer]);
};

/** @param endpoint with an empty url if deleted */
export const encodeWebhookRow = (endpoint: WebhookRecord): string => {
  const { updatedAt, tenant, id, url, eventTypes, description, disabledReason, createdAt } = endpoint;
  const types = eventTypes.join(' ');
  return encodeRow([updatedAt, tenant, id, url, types, description, disabledReason ?? '', createdAt]);
};

/** Without `updated_at` (Unix milliseconds and a tab). */
export const encodeProfileRow = (
  { tenant, userId }: LearnerId,
  { displayName, attributes }: Profile,
): string => `${encodeRow([tenant, userId, displayName])}\t${encodeMap(attributes)}`;

/** ClickHouse does not apply the escapes of TabSeparated to a Map. */
const encodeMap = (fields: Readonly<Record<string, string>>): string =>
  `{${Object.entries(fields).map((pair) => pair.map(quoteText).join(':'))}}`;
const quoteText = (text: string): string => `'${text.replace(/[\\']/g, '\\$&')}'`;

function decodeMap(text: string): Record<string, string> {
  const pairs = text.matchAll(/'((?:\\.|[^'\\])*)':'((?:\\.|[^'\\])*)'/g);
  return Object.fromEntries(
    Array.from(pairs, (pair) => pair.slice(1).map((quoted) => quoted.replace(/\\(.)/g, '$1'))),
  );
}

/** Without `updated_at` (Unix milliseconds and a tab) and `created_at`. @param setting null: deleted */
export const encodeGroupRow = (tenant: string, groupId: string, setting: GroupSetting | null): string =>
  encodeRow([tenant, groupId, setting?.name, setting?.kind ?? '', setting?.parentGroupId ?? '']);

/** @returns null for kinds without a learner */
export function parseRowLearner(kind: string, line: string): (LearnerId & { readonly at: number }) | null {
  if (!/^(goal|forecast(_2)?|taken_back|profile|group_member)$/.test(kind)) return null;
  const [at = '', tenant = '', userId = ''] = line.split('\t').map(decodeText);
  return { at: Number(at), tenant, userId };
}

/**
 * @returns Unix milliseconds of the last row that belongs to the erased history. Redis dates retractions, profiles,
 * memberships and erasures; a process dates goals and forecasts, and its clock may differ.
 */
export function findErasureCutoff(
  kind: string,
  erasure: { readonly goalAt: number; readonly below: OutboxId },
): number {
  if (kind === 'goal') return erasure.goalAt;
  return kind.startsWith('forecast') ? erasure.below.ms + maxClockSkewMs : erasure.below.ms;
}

/** Prefix of a learner's rows after their time. */
export const learnerRowPrefix = (tenant: string, userId: string): string =>
  `${encodeRow([tenant, userId])}\t`;

type Column = (typeof journalColumns)[JournalKind][number];

const timeColumns: ReadonlySet<Column> = new Set(['updated_at', 'made_at', 'taken_back_at', 'received_at']);
const textColumns: ReadonlySet<Column> = new Set([
  ...(['tenant', 'user_id', 'skill_id', 'event_id', 'name', 'section'] as const),
  ...(['target_date', 'first_answer', 'display_name', 'group_id'] as const),
]);

/** Times in RFC 3339, missing values null. */
export function decodeJournalRow(kind: JournalKind, line: string): Record<string, unknown> {
  const values = line.split('\t');
  return Object.fromEntries(
    journalColumns[kind].map((name, i) => {
      const field = values[i] ?? '\\N';
      if (field === '\\N') return [name, null];
      if (name === 'attributes') return [name, decodeMap(field)];
      if (timeColumns.has(name)) return [name, new Date(Number(field)).toISOString()];
      return [name, textColumns.has(name) ? decodeText(field) : Number(field)];
    }),
  );
}

const encodeRow = (fields: readonly (string | number | null | undefined)[]): string =>
  fields.map((field) => (typeof field === 'string' ? encodeText(field) : `${field ?? '\\N'}`)).join('\t');

const [special, letters] = ['\\\t\n\r\0\b\f', '\\tnr0bf'];

const encodeText = (text: string): string =>
  text.replace(/[\\\t\n\r\0\b\f]/g, (character) => `\\${letters[special.indexOf(character)]}`);
const decodeText = (field: string): string =>
  field.replace(/\\(.)/g, (written, letter) => special[letters.indexOf(letter)] ?? written);
