import type { Cluster, Redis } from 'ioredis';
import {
  type AttemptEvent,
  type AttemptFigures,
  type AttemptRow,
  encodeAttemptRow,
  type SkillFigures,
} from '../../../src/contracts/answers/attempt-row.js';
import type { AnswerConditions, SkillConditions } from '../../../src/domain/answer/answer-conditions.js';
import { defaultParameters } from '../../../src/domain/base/bkt-parameters.js';
import { utc } from '../../../src/domain/base/calendar.js';
import { dayMs, toUtcDay } from '../../../src/domain/base/common.js';
import { executeAll } from '../../../src/store/redis/connection/client.js';
import { outboxKey, outboxRowCountKey } from '../../../src/store/redis/keys.js';

/** Of a question with one skill. */
type FlatRow = Omit<AttemptEvent, 'skillIds'> &
  Omit<AttemptFigures, 'skills'> &
  Omit<AnswerConditions, 'skills'> &
  SkillFigures &
  SkillConditions & { readonly skillId: string };

const start = Date.UTC(2026, 0, 15, 12);

/** The i-th made-up answer: 500 learners, 20 skills, ten days. */
export function attemptRow(i: number, change: Partial<FlatRow> = {}): FlatRow {
  const occurredAt = change.occurredAt ?? start - (i % 10) * dayMs;
  return {
    ...{ tenant: 'default', userId: `learner-${i % 500}`, skillId: `skill-${i % 20}` },
    itemId: i % 3 === 0 ? null : `item-${i}`,
    eventId: `event-${i}`,
    isCorrect: i % 4 !== 0,
    timeSpentSeconds: i % 5 === 0 ? null : 20 + (i % 60),
    confidenceScore: i % 2 === 0 ? 4 : null,
    questionDifficulty: i % 7 === 0 ? null : 0.25,
    ...{ occurredAt, timeZone: utc, localDay: toUtcDay(occurredAt) },
    receivedAt: start,
    learnerSeq: 1 + Math.floor(i / 500),
    ...{ masteryBefore: 0.3, masteryAfter: 0.692683, pCorrect: 0.41, plateauDetected: false, isRapid: false },
    efficiencyIndex: i % 5 === 0 ? null : 50,
    recommendationCode: '',
    modelVersion: 2,
    parameters: defaultParameters,
    version: 0,
    source: 'default',
    difficultyShift: 0,
    abilityOffset: 0,
    itemDifficulty: 0,
    rapidSeconds: 3,
    norm: { logMean: 4.3, logSd: 0.6, accuracy: 0.75 },
    ...{ section: null, weight: 1, closedMastery: null, baselineTotal: null },
    eventFingerprint: 1_000_000 + i,
    learnerVersion: 1 + Math.floor(i / 500),
    ...change,
  };
}

/** The parts that `encodeAttemptRow` takes. */
export const rowParts = ({ skillId, ...row }: FlatRow): AttemptRow => ({
  event: { ...row, skillIds: [skillId] },
  figures: { ...row, skills: [row] },
  conditions: { ...row, skills: [row] },
});

/** Adds skills to the question, with the parameters of the first one. */
export const withFurther = (
  { event, figures, conditions }: AttemptRow,
  further: readonly (SkillFigures & { readonly skillId: string })[],
): AttemptRow => ({
  event: { ...event, skillIds: [event.skillIds[0], ...further.map(({ skillId }) => skillId)] },
  figures: { ...figures, skills: [figures.skills[0], ...further] },
  conditions: {
    ...conditions,
    skills: [conditions.skills[0], ...further.map(() => conditions.skills[0])],
  },
});

export function encoded(row: FlatRow): string {
  const { event, figures, conditions } = rowParts(row);
  return encodeAttemptRow(event, figures, conditions);
}

/** Row number `i`, encoded as in the outbox. */
export const encodedRow = (i: number): string => encoded(attemptRow(i));

/** Encoded like a block of the outbox: partition 0, outbox ids `1-first`, `1-first+1` and so on. */
export function encodedRows(rows: readonly FlatRow[], first = 0): Buffer {
  return Buffer.from(rows.map((row, i) => `0\t1\t${first + i}\t${encoded(row)}\n`).join(''));
}

/** Rows of an entry, in turn. */
const entryRows = [1, 3, 2];

/** Appends answers `from` to `to - 1` to the outboxes, learner by learner in one partition; some share an entry. */
export async function fillOutbox(redis: Redis | Cluster, partitions: number, from: number, to: number) {
  for (let i = from; i < to; ) {
    // One for each partition, because a Cluster takes them slot by slot.
    const rows = Array.from({ length: partitions }, (): string[] => []);
    for (const end = Math.min(to, i + 2000); i < end; i++)
      rows[(i % 500) % partitions]?.push(encoded(attemptRow(i)));
    await Promise.all(rows.map((own, partition) => executeAll(addEntries(redis.pipeline(), partition, own))));
  }
}

type Pipeline = ReturnType<Redis['pipeline']>;

function addEntries(pipeline: Pipeline, partition: number, rows: readonly string[]): Pipeline {
  pipeline.incrby(outboxRowCountKey(partition), rows.length);
  for (let at = 0, entry = 0; at < rows.length; entry += 1) {
    const size = entryRows[entry % entryRows.length] as number;
    pipeline.xadd(outboxKey(partition), '*', 'r', rows.slice(at, at + size).join('\n'));
    at += size;
  }
  return pipeline;
}

/** The rows in a partition's outbox, in their order. */
export const waitingLines = async (redis: Redis | Cluster, partition: number): Promise<string[]> =>
  (await redis.xrange(outboxKey(partition), '-', '+')).flatMap(([, [, rows = '']]) => rows.split('\n'));
