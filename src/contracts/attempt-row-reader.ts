/**
 * Reads attempt rows back: those that wait in an outbox, and what ClickHouse gives for the same columns
 * (TabSeparated, times as Unix seconds).
 */

import { type Section, sections } from '../domain/base/types.js';
import type { ParameterSource } from '../domain/catalogue/tenant-model.js';
import { type AttemptRow, rowColumns } from './attempt-row.js';

type Column = (typeof rowColumns)[number];

const at = Object.fromEntries(rowColumns.map((name, i) => [name, i])) as Record<Column, number>;

/** @param line without the outbox columns and without a line feed. @throws Error for what is no row */
export function decodeAttemptRow(line: string): AttemptRow {
  const fields = line.split('\t');
  if (fields.length !== rowColumns.length)
    throw new Error(`a row of ${fields.length} fields is not one of attempts`);
  const text = (column: Column): string => unescapeText(fields[at[column]] as string);
  const maybeText = (column: Column): string | null => text(column) || null;
  const number = (column: Column): number => numberOf(fields[at[column]] as string, column);
  const maybe = (column: Column): number | null => (fields[at[column]] === '\\N' ? null : number(column));
  const time = (column: Column): number => Math.round(1000 * number(column));
  return {
    event: {
      tenant: text('tenant'),
      userId: text('user_id'),
      skillId: text('skill_id'),
      itemId: maybeText('item_id'),
      eventId: maybeText('event_id'),
      isCorrect: number('is_correct') === 1,
      timeSpentSeconds: maybe('time_spent_seconds'),
      confidenceScore: maybe('confidence_score'),
      questionDifficulty: maybe('question_difficulty'),
      occurredAt: time('occurred_at'),
      receivedAt: time('received_at'),
    },
    figures: {
      learnerSeq: number('learner_seq'),
      masteryBefore: number('mastery_before'),
      masteryAfter: number('mastery_after'),
      plateauDetected: number('plateau_detected') === 1,
      isRapid: number('rapid') === 1,
      efficiencyIndex: maybe('efficiency_index'),
      recommendationCode: text('recommendation_code'),
      modelVersion: number('model_version'),
      baselineTotal: maybe('baseline_total'),
      eventFingerprint: number('event_fingerprint'),
      learnerVersion: number('learner_version'),
    },
    conditions: {
      parameters: {
        pInit: number('p_init'),
        pLearn: number('p_learn'),
        pGuess: number('p_guess'),
        pSlip: number('p_slip'),
      },
      version: number('parameters_version'),
      source: text('parameters_source') as ParameterSource,
      difficultyShift: number('difficulty_shift'),
      abilityOffset: number('ability_offset'),
      itemDifficulty: number('item_difficulty'),
      rapidSeconds: number('rapid_seconds'),
      time: { logMean: number('log_time_mean'), logSd: number('log_time_sd') },
      pCorrect: number('p_correct'),
      section: sectionOf(text('section')),
      weight: number('weight'),
      closedMastery: maybe('closed_mastery'),
    },
  };
}

function numberOf(field: string, column: Column): number {
  const number = field === '' ? Number.NaN : Number(field);
  if (Number.isNaN(number)) throw new Error(`${column} of an attempt row is no number: ${field}`);
  return number;
}

const sectionOf = (field: string): Section | null => sections.find((section) => section === field) ?? null;

/** Ids have no control characters, so what stands behind a backslash stands for itself. */
export const unescapeText = (text: string): string =>
  text.includes('\\') ? text.replaceAll(/\\(.)/g, '$1') : text;
