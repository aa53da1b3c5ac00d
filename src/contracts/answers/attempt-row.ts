/**
 * A worker encodes each row once, as TabSeparated. The drain only moves bytes and prepends `outboxColumns`.
 */
import type { AnswerConditions, SkillConditions } from '../../domain/answer/answer-conditions.js';
import { formatDay, parseDay } from '../../domain/base/calendar.js';
import { type Answer, type NonEmpty, sections } from '../../domain/base/common.js';
import type { ParameterSource } from '../../domain/catalogue/tenant-model.js';
import type { LearnerId } from '../learners/learner-name.js';

export interface AttemptEvent extends Answer, LearnerId {
  /** Skills that the question needs, distinct. The row's `skill_id` is the first. */
  readonly skillIds: NonEmpty<string>;
  readonly itemId: string | null;
  readonly eventId: string | null;
  /** Unix milliseconds. */
  readonly receivedAt: number;
}

/** Masteries 0 to 1, unrounded. */
export interface SkillFigures {
  readonly masteryBefore: number;
  readonly masteryAfter: number;
  readonly plateauDetected: boolean;
}

export interface AttemptFigures {
  /** From 1, without gaps. */
  readonly learnerSeq: number;
  /** In the order of `skillIds`. */
  readonly skills: NonEmpty<SkillFigures>;
  readonly isRapid: boolean;
  /** Of the first skill, 0 to 100; null: too few times, or many rapid answers. */
  readonly efficiencyIndex: number | null;
  readonly recommendationCode: string;
  readonly modelVersion: number;
  /** Null: too few answers. */
  readonly baselineTotal: number | null;
  /** 48-bit hash of the event as sent; 0: no event id. */
  readonly eventFingerprint: number;
  /** Version of the learner record after the commit. All answers of a commit have the same. */
  readonly learnerVersion: number;
}

export const outboxColumns = ['partition_id', 'outbox_ms', 'outbox_seq'] as const;

/** In the order of `encodeAttemptRow`. */
export const attemptColumns = [
  ...(['tenant', 'user_id', 'skill_id', 'item_id', 'event_id'] as const),
  ...(['is_correct', 'time_spent_seconds', 'confidence_score', 'question_difficulty'] as const),
  ...(['occurred_at', 'received_at', 'learner_seq'] as const),
  ...(['mastery_before', 'mastery_after', 'p_correct', 'plateau_detected'] as const),
  ...(['p_init', 'p_learn', 'p_guess', 'p_slip', 'p_forget'] as const),
  ...(['parameters_version', 'model_version'] as const),
  ...(['parameters_source', 'difficulty_shift', 'ability_offset', 'item_difficulty'] as const),
  ...(['rapid_seconds', 'log_time_mean', 'log_time_sd', 'accuracy_norm'] as const),
  ...(['rapid', 'efficiency_index', 'recommendation_code'] as const),
  ...(['section', 'weight', 'closed_mastery', 'baseline_total'] as const),
  ...(['event_fingerprint', 'learner_version', 'further_skills', 'local_date', 'time_zone'] as const),
] as const;

/**
 * @returns TSV without `outboxColumns` and line feed. A missing id is empty, a missing number is `\N`. Times
 * are Unix seconds with three decimals.
 */
export function encodeAttemptRow(
  event: AttemptEvent,
  figures: AttemptFigures,
  conditions: AnswerConditions,
): string {
  const [figuresOfFirst] = figures.skills;
  const [{ parameters, version, source }] = conditions.skills;
  const { pInit, pLearn, pGuess, pSlip, pForget } = parameters;
  const ids = `${event.tenant}\t${encodeText(event.userId)}\t${encodeText(event.skillIds[0])}\t${encodeText(event.itemId)}\t${encodeText(event.eventId)}`;
  const answer = `${bit(event.isCorrect)}\t${orNull(event.timeSpentSeconds)}\t${orNull(event.confidenceScore)}\t${orNull(event.questionDifficulty)}`;
  const times = `${encodeTime(event.occurredAt)}\t${encodeTime(event.receivedAt)}\t${figures.learnerSeq}`;
  const trace = `${figuresOfFirst.masteryBefore}\t${figuresOfFirst.masteryAfter}\t${conditions.pCorrect}\t${bit(figuresOfFirst.plateauDetected)}`;
  const model = `${pInit}\t${pLearn}\t${pGuess}\t${pSlip}\t${pForget}\t${version}\t${figures.modelVersion}`;
  const terms = `${source}\t${conditions.difficultyShift}\t${conditions.abilityOffset}\t${conditions.itemDifficulty}`;
  const pace = `${conditions.rapidSeconds}\t${conditions.norm.logMean}\t${conditions.norm.logSd}\t${conditions.norm.accuracy}`;
  const outcome = `${bit(figures.isRapid)}\t${orNull(figures.efficiencyIndex)}\t${figures.recommendationCode}`;
  const place = `${conditions.section ?? ''}\t${conditions.weight}\t${orNull(conditions.closedMastery)}\t${orNull(figures.baselineTotal)}`;
  const further = event.skillIds.length === 1 ? '[]' : encodeFurtherSkills(event, figures, conditions);
  const origin = `${figures.eventFingerprint}\t${figures.learnerVersion}\t${further}`;
  const day = `${formatDay(conditions.localDay)}\t${conditions.timeZone}`;
  return `${ids}\t${answer}\t${times}\t${trace}\t${model}\t${terms}\t${pace}\t${outcome}\t${place}\t${origin}\t${day}`;
}

/** Array of tuples: id, masteries, plateau, parameters, their version and source. */
const encodeFurtherSkills = (
  { skillIds }: AttemptEvent,
  figures: AttemptFigures,
  conditions: AnswerConditions,
): string =>
  `[${skillIds
    .slice(1)
    .map((skillId, i) => {
      const { masteryBefore, masteryAfter, plateauDetected } = figures.skills[i + 1] as SkillFigures;
      const { parameters, version, source } = conditions.skills[i + 1] as SkillConditions;
      const { pInit, pLearn, pGuess, pSlip, pForget } = parameters;
      const traced = `${masteryBefore},${masteryAfter},${bit(plateauDetected)}`;
      return `(${quoteText(skillId)},${traced},${pInit},${pLearn},${pGuess},${pSlip},${pForget},${version},'${source}')`;
    })
    .join()}]`;

const quoteText = (text: string): string => `'${text.replaceAll(/[\\']/g, '\\$&')}'`;

const bit = (flag: boolean): number => (flag ? 1 : 0);
const orNull = (value: number | null): number | string => value ?? '\\N';

/** Ids have no control characters, so only backslashes need escaping. */
const encodeText = (text: string | null): string =>
  text?.includes('\\') ? text.replaceAll('\\', '\\\\') : (text ?? '');

/** Ten digits: ClickHouse does not read shorter numbers as Unix seconds. */
const encodeTime = (ms: number): string => (ms / 1000).toFixed(3).padStart(14, '0');

export const attemptRowPrefix = (tenant: string, userId: string): string =>
  `${tenant}\t${encodeText(userId)}\t`;

export type AttemptRow = Readonly<{
  event: AttemptEvent;
  figures: AttemptFigures;
  conditions: AnswerConditions;
}>;

type Column = (typeof attemptColumns)[number];

const columnIndex = Object.fromEntries(attemptColumns.map((name, i) => [name, i])) as Record<Column, number>;

/** @param line as from `encodeAttemptRow`. @throws Error for an invalid row */
export function decodeAttemptRow(line: string): AttemptRow {
  const fields = line.split('\t');
  if (fields.length !== attemptColumns.length)
    throw new Error(`a row of attempts cannot have ${fields.length} fields`);
  const field = (column: Column): string => fields[columnIndex[column]] as string;
  const text = (column: Column): string => unescapeText(field(column));
  const number = (column: Column): number => parseNumber(field(column), column);
  const nullableNumber = (column: Column): number | null => (field(column) === '\\N' ? null : number(column));
  const time = (column: Column): number => Math.round(1000 * number(column));
  const further = decodeFurtherSkills(field('further_skills'));
  return {
    event: {
      tenant: text('tenant'),
      userId: text('user_id'),
      skillIds: [text('skill_id'), ...further.map(({ skillId }) => skillId)],
      itemId: text('item_id') || null,
      eventId: text('event_id') || null,
      isCorrect: number('is_correct') === 1,
      timeSpentSeconds: nullableNumber('time_spent_seconds'),
      confidenceScore: nullableNumber('confidence_score'),
      questionDifficulty: nullableNumber('question_difficulty'),
      occurredAt: time('occurred_at'),
      receivedAt: time('received_at'),
    },
    figures: {
      learnerSeq: number('learner_seq'),
      skills: [
        {
          masteryBefore: number('mastery_before'),
          masteryAfter: number('mastery_after'),
          plateauDetected: number('plateau_detected') === 1,
        },
        ...further.map(({ figures }) => figures),
      ],
      isRapid: number('rapid') === 1,
      efficiencyIndex: nullableNumber('efficiency_index'),
      recommendationCode: text('recommendation_code'),
      modelVersion: number('model_version'),
      baselineTotal: nullableNumber('baseline_total'),
      eventFingerprint: number('event_fingerprint'),
      learnerVersion: number('learner_version'),
    },
    conditions: {
      timeZone: text('time_zone'),
      localDay: parseNumber(`${parseDay(field('local_date'))}`, 'local_date'),
      skills: [
        {
          parameters: {
            pInit: number('p_init'),
            pLearn: number('p_learn'),
            pGuess: number('p_guess'),
            pSlip: number('p_slip'),
            pForget: number('p_forget'),
          },
          version: number('parameters_version'),
          source: text('parameters_source') as ParameterSource,
        },
        ...further.map(({ conditions }) => conditions),
      ],
      difficultyShift: number('difficulty_shift'),
      abilityOffset: number('ability_offset'),
      itemDifficulty: number('item_difficulty'),
      rapidSeconds: number('rapid_seconds'),
      norm: {
        logMean: number('log_time_mean'),
        logSd: number('log_time_sd'),
        accuracy: number('accuracy_norm'),
      },
      pCorrect: number('p_correct'),
      section: sections.find((section) => section === field('section')) ?? null,
      weight: number('weight'),
      closedMastery: nullableNumber('closed_mastery'),
    },
  };
}

/** A quoted text or a number. */
const tupleField = /'(?:[^\\']|\\.)*'|[^'(),[\]]+/g;
const tupleFields = 11;

export const countFurtherSkills = (field: string): number =>
  (field.match(tupleField)?.length ?? 0) / tupleFields;

/** @throws Error for an invalid field */
function decodeFurtherSkills(field: string) {
  const values = field.match(tupleField) ?? [];
  if (values.length % tupleFields !== 0)
    throw new Error(`further_skills of an attempt row cannot have ${values.length} values`);
  return Array.from({ length: values.length / tupleFields }, (_, i) => {
    const [skillId = '', ...texts] = values.slice(i * tupleFields, (i + 1) * tupleFields);
    const numbers = texts.slice(0, -1).map((text) => parseNumber(text, 'further_skills'));
    const [masteryBefore, masteryAfter, plateau, pInit, pLearn, pGuess, pSlip, pForget, version] =
      numbers as [number, number, number, number, number, number, number, number, number];
    return {
      skillId: unquoteText(skillId),
      figures: { masteryBefore, masteryAfter, plateauDetected: plateau === 1 },
      conditions: {
        parameters: { pInit, pLearn, pGuess, pSlip, pForget },
        version,
        source: unquoteText(texts.at(-1) ?? '') as ParameterSource,
      },
    };
  });
}

const unquoteText = (text: string): string => unescapeText(text.slice(1, -1));

function parseNumber(field: string, column: Column): number {
  const number = field === '' ? Number.NaN : Number(field);
  if (Number.isNaN(number)) throw new Error(`${column} of an attempt row is not a number: ${field}`);
  return number;
}

export const unescapeText = (text: string): string =>
  text.includes('\\') ? text.replaceAll(/\\(.)/g, '$1') : text;
