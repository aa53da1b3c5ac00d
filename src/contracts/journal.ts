/**
 * Rows of the journal: what only Redis knows and analysts need, on its way to ClickHouse.
 *
 * A row is encoded once, in the form that ClickHouse takes as it is (TabSeparated). Those of goals and of the
 * catalogue wait in Redis behind what only Redis can give, the revision and the time, which the script that makes
 * the change puts in front of them.
 */

import type { BktParameters } from '../domain/base/params.js';
import type { Section } from '../domain/base/types.js';
import type { AccuracyForecast } from '../domain/prediction/accuracy-model.js';
import type { ScoreForecast, Scores } from '../domain/score/score.js';
import { clockMs } from './corrections.js';
import type { OutboxId } from './outbox-ids.js';

/**
 * What a journal entry's field `k` says of the row in its field `r`. Rows wait across upgrades, and an older process
 * may meet those of a newer one: other columns are another kind, which leaves the old one as it is.
 */
export const journalKinds = ['goal', 'skill', 'forecast', 'taken_back'] as const;
export type JournalKind = (typeof journalKinds)[number];

/** Columns of whole rows, in their order. */
export const journalColumns = {
  goal: ['updated_at', 'tenant', 'user_id', 'target_score', 'target_date'],
  skill: [
    'revision',
    'updated_at',
    'tenant',
    'skill_id',
    'name',
    'section',
    'weight',
    'p_init',
    'p_learn',
    'p_guess',
    'p_slip',
  ],
  forecast: [
    'made_at',
    'tenant',
    'user_id',
    'forecast_days',
    'confidence_level',
    'learner_seq',
    'current_math',
    'current_rw',
    'current_total',
    'predicted_math',
    'predicted_rw',
    'predicted_total',
    'math_low',
    'math_high',
    'rw_low',
    'rw_high',
    'total_low',
    'total_high',
    'target_score',
    'goal_probability',
    'model_version',
    'tenant_model_version',
    'expected_share',
    'share_sd',
    'below_50',
    'below_80',
    'below_95',
    'above_50',
    'above_80',
    'above_95',
  ],
  taken_back: [
    'taken_back_at',
    'tenant',
    'user_id',
    'event_id',
    'skill_id',
    'learner_seq',
    'received_at',
    'first_answer',
  ],
} as const satisfies Record<JournalKind, readonly string[]>;

export interface GoalChange {
  readonly tenant: string;
  readonly userId: string;
  /** Null: the goal was deleted. */
  readonly targetScore: number | null;
  /** YYYY-MM-DD in UTC. */
  readonly targetDate: string | null;
}

/** Everything of a goal's row after `updated_at`, which stands before it as Unix milliseconds and a tab. */
export const goalRow = ({ tenant, userId, targetScore, targetDate }: GoalChange): string =>
  row([tenant, userId, targetScore, targetDate]);

export interface SkillChange {
  readonly tenant: string;
  readonly skillId: string;
  readonly name: string | null;
  readonly section: Section | null;
  readonly weight: number;
  /** Set by hand; null: fitted ones, or the defaults. */
  readonly parameters: BktParameters | null;
}

/**
 * Everything of a catalogue row after `revision` and `updated_at`, which stand before it as a number and as Unix
 * milliseconds, a tab behind each.
 */
export const skillRow = ({ tenant, skillId, name, section, weight, parameters }: SkillChange): string =>
  row([
    tenant,
    skillId,
    name,
    section ?? '',
    weight,
    parameters?.pInit ?? null,
    parameters?.pLearn ?? null,
    parameters?.pGuess ?? null,
    parameters?.pSlip ?? null,
  ]);

/** How far intervals of some levels reach to one side, in units of sqrt(sd² + 1 / (4 m)) for m answers. */
export interface IntervalReach {
  readonly at50: number;
  readonly at80: number;
  readonly at95: number;
}

/**
 * Share of right answers that a learner is expected to give within a horizon. Its spread is told on the scale
 * asin(sqrt(share)), on which it does not depend on the share.
 */
export interface ExpectedShare extends AccuracyForecast {
  readonly below: IntervalReach;
  readonly above: IntervalReach;
}

/** One forecast as it was served. */
export interface ServedForecast {
  readonly tenant: string;
  readonly userId: string;
  /** Unix milliseconds. */
  readonly madeAt: number;
  /** Horizon, 1 to 365. */
  readonly days: number;
  /** Of the score intervals, 0.5 to 0.99. */
  readonly level: number;
  /** The learner's counted answers so far. */
  readonly learnerSeq: number;
  readonly current: Scores;
  readonly predicted: Scores;
  readonly intervals: ScoreForecast['intervals'];
  /** Null: no goal. */
  readonly targetScore: number | null;
  readonly goalProbability: number | null;
  /** Version of the rules (params.ts). */
  readonly modelVersion: number;
  /** Version of the tenant's fitted model; 0: the defaults. */
  readonly tenantModelVersion: number;
  readonly accuracy: ExpectedShare;
}

/** A served forecast's whole row. */
export function forecastRow(forecast: ServedForecast): string {
  const { current, predicted, accuracy } = forecast;
  const { math, rw, total } = forecast.intervals;
  const { below, above } = accuracy;
  return row([
    ...[forecast.madeAt, forecast.tenant, forecast.userId],
    ...[forecast.days, forecast.level, forecast.learnerSeq],
    ...[current.math, current.rw, current.total],
    ...[predicted.math, predicted.rw, predicted.total],
    ...[math.low, math.high, rw.low, rw.high, total.low, total.high],
    ...[forecast.targetScore, forecast.goalProbability],
    ...[forecast.modelVersion, forecast.tenantModelVersion],
    ...[accuracy.expected, accuracy.sd],
    ...[below.at50, below.at80, below.at95, above.at50, above.at80, above.at95],
  ]);
}

/** An answer that was taken back. */
export interface TakenBackAnswer {
  readonly tenant: string;
  readonly userId: string;
  readonly eventId: string;
  readonly skillId: string;
  readonly learnerSeq: number;
  /** Unix milliseconds. */
  readonly receivedAt: number;
  /** What is remembered under its id, in base64; empty where nothing is any more. */
  readonly firstAnswer: string;
}

/** Everything of its row after `taken_back_at`, which stands before it as Unix milliseconds and a tab. */
export const takenBackRow = (answer: TakenBackAnswer): string => {
  const { tenant, userId, eventId, skillId, learnerSeq, receivedAt, firstAnswer } = answer;
  return row([tenant, userId, eventId, skillId, learnerSeq, receivedAt, firstAnswer]);
};

/** Whose a row of any kind but the catalogue's is, and its time in Unix milliseconds; null for other kinds. */
export function journalRowOf(
  kind: string,
  row: string,
): { readonly tenant: string; readonly userId: string; readonly at: number } | null {
  if (kind !== 'goal' && kind !== 'forecast' && kind !== 'taken_back') return null;
  const [at = '', tenant = '', userId = ''] = row.split('\t').map(unescapeText);
  return { at: Number(at), tenant, userId };
}

/**
 * Up to which time, in Unix milliseconds, such a row tells of a history that an erasure has ended. Redis itself dates goals
 * and what is taken back, as it does the erasure; whoever makes a forecast dates it, and clocks differ.
 */
export function lastOfEnded(
  kind: string,
  ended: { readonly goalAt: number; readonly below: OutboxId },
): number {
  if (kind === 'goal') return ended.goalAt;
  return kind === 'taken_back' ? ended.below.ms : ended.below.ms + clockMs;
}

/** Ids have no control characters: a backslash stands before another one alone. */
const unescapeText = (text: string): string => text.replaceAll('\\\\', '\\');

type Field = string | number | null;

const row = (fields: readonly Field[]): string => fields.map(encodeField).join('\t');

const encodeField = (value: Field): string =>
  value === null ? '\\N' : typeof value === 'string' ? escapeText(value) : `${value}`;

/** All that has a meaning in TSV, whether or not callers may send it. */
const escapeText = (text: string): string =>
  text.replace(special, (character) => escapes[character] ?? character);

const special = /[\\\t\n\r\0\b\f]/g;

const escapes: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  '\t': '\\t',
  '\n': '\\n',
  '\r': '\\r',
  '\0': '\\0',
  '\b': '\\b',
  '\f': '\\f',
};

/** What a learner's rows begin with, after their time. */
export const learnerRowPrefix = (tenant: string, userId: string): string => `${row([tenant, userId])}\t`;

/** A row by the names of its columns, as ClickHouse tells it: times in RFC 3339; null is what it does not have. */
export function journalFields(kind: JournalKind, line: string): Record<string, Field> {
  const values = line.split('\t');
  return Object.fromEntries(journalColumns[kind].map((name, i) => [name, valueIn(name, values[i] ?? '\\N')]));
}

type Column = (typeof journalColumns)[JournalKind][number];

const times: ReadonlySet<Column> = new Set(['updated_at', 'made_at', 'taken_back_at', 'received_at']);
const texts: ReadonlySet<Column> = new Set([
  ...(['tenant', 'user_id', 'skill_id', 'event_id', 'name', 'section'] as const),
  ...(['target_date', 'first_answer'] as const),
]);

function valueIn(column: Column, field: string): Field {
  if (field === '\\N') return null;
  if (times.has(column)) return new Date(Number(field)).toISOString();
  return texts.has(column) ? textOf(field) : Number(field);
}

const textOf = (field: string): string =>
  field.replace(/\\(.)/g, (written, character) => unescapes[written] ?? character);

const unescapes: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(escapes).map(([character, written]) => [written, character]),
);
