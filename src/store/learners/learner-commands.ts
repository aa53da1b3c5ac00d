/** Redis commands that load and commit learners, and their replies. */
import { type LearnerId, learnerName } from '../../contracts/learners/learner-name.js';
import { splitIntoEntries } from '../../contracts/outbox/outbox-ids.js';
import type { WebhookEvent } from '../../contracts/webhooks/webhook-events.js';
import type { ItemRecord, LearnerState, SkillState } from '../../domain/tracing/learner-states.js';
import { groupByPartition } from '../../lists.js';
import { writeEvent } from '../redis/commands/webhook-events.js';
import {
  acceptedCountsKey,
  acceptedField,
  eventIdsKey,
  goalChecksKey,
  importMarksKey,
  itemTracesKey,
  learnerKey,
  outboxKey,
  outboxRowCountKey,
  partitionOf,
} from '../redis/keys.js';
import type { CommandEncoder } from '../redis/wire/command-encoder.js';
import type { ReplySequence } from '../redis/wire/replies.js';
import { type IdFields, type StoredIds, toStoredIds } from './event-ids.js';
import { decodeItem, encodeItem } from './item-codec.js';
import { decodeLearner, encodeLearner, goalField, learnerField, skillField } from './learner-codec.js';
import { decodeSkill, encodeSkill } from './skill-codec.js';

export interface LearnerLocation extends LearnerId {
  readonly partition: number;
}

export const locateLearner = (tenant: string, userId: string, partitions: number): LearnerLocation => {
  return { partition: partitionOf(tenant, userId, partitions), tenant, userId };
};

export interface LearnerQuery extends LearnerLocation {
  readonly skillIds: readonly string[];
  readonly eventIdHashes: readonly Buffer[];
  readonly itemHashes: readonly Buffer[];
}

export interface LoadedLearner {
  readonly learner: LearnerState | null;
  /** Also true for a removed goal. */
  readonly hasGoal: boolean;
  readonly skills: readonly (SkillState | null)[];
  readonly ids: StoredIds;
  /** Of the current or the previous generation. */
  readonly items: readonly (ItemRecord | null)[];
  /** Last counted line, from 1. */
  readonly importLine: number;
}

/** Written atomically. */
export interface LearnerCommit extends LearnerLocation {
  /** Version: one above the loaded one, or random for a new learner. */
  readonly learner: LearnerState;
  readonly skills: readonly (readonly [string, SkillState])[];
  readonly rows: readonly string[];
  /** UTC days of arrival since 1970, by row. */
  readonly arrivalDays: readonly number[];
  readonly ids: IdFields;
  /** Before the commit; 0 for a new learner. */
  readonly itemGeneration: number;
  readonly items: readonly (readonly [id: Buffer, item: ItemRecord])[];
  readonly importLine: number;
  readonly webhookEvents: readonly WebhookEvent[];
  /** Unix milliseconds; null: no check. */
  readonly goalCheckAt: number | null;
}

export function writeQuery(
  request: CommandEncoder,
  { partition, tenant, userId, skillIds, itemHashes }: LearnerQuery,
  idFields: readonly string[],
  importId: string | null,
): void {
  const key = learnerKey(partition, tenant, userId);
  request.command(4 + skillIds.length, 'HMGET');
  request.text(key);
  request.text(learnerField);
  request.text(goalField);
  for (const skillId of skillIds) request.text(skillField(skillId));
  if (importId !== null) request.writeCommand('HMGET', importMarksKey(partition, importId), key);
  if (idFields.length > 0) request.writeCommand('HMGET', eventIdsKey(partition, tenant, userId), ...idFields);
  if (itemHashes.length === 0) return;
  for (const parity of [0, 1]) {
    request.command(2 + itemHashes.length, 'HMGET');
    request.text(itemTracesKey(partition, parity, tenant, userId));
    for (const id of itemHashes) request.writeBytes(id);
  }
}

/** Reads the replies to `writeQuery`. @throws Error for records of another version */
export function parseLoadedLearner(
  replies: ReplySequence,
  { itemHashes }: LearnerQuery,
  idFields: readonly string[],
  importId: string | null,
): LoadedLearner {
  const [learnerRecord, goal, ...skills] = replies.list();
  const mark = importId === null ? null : replies.list()[0];
  const ids = toStoredIds(idFields, idFields.length > 0 ? replies.list() : []);
  const [even, odd] = itemHashes.length > 0 ? [replies.list(), replies.list()] : [[], []];
  const learner = learnerRecord ? decodeLearner(learnerRecord) : null;
  const generation = learner?.items.generation ?? 0;
  // The parity of a generation selects its hash.
  const [current, previous] = generation % 2 === 0 ? [even, odd] : [odd, even];
  return {
    learner,
    hasGoal: goal !== null,
    skills: skills.map((skill) => skill && decodeSkill(skill)),
    ids,
    items: itemHashes.map(
      (_, i) =>
        decodeItemRecord(current[i] ?? null, generation) ??
        decodeItemRecord(previous[i] ?? null, generation - 1),
    ),
    importLine: Number(mark ?? 0),
  };
}

const decodeItemRecord = (record: Buffer | null, generation: number): ItemRecord | null =>
  record && { generation, trace: decodeItem(record) };

export function writeCommits(
  request: CommandEncoder,
  commits: readonly LearnerCommit[],
  importId: string | null,
): void {
  for (const commit of commits) writeCommit(request, commit, importId);
  for (const [partition, partitionCommits] of groupByPartition(commits)) {
    const rows = partitionCommits.flatMap((commit) => commit.rows);
    // One entry for all rows: each entry costs Redis a microsecond.
    for (const text of splitIntoEntries(rows))
      request.writeCommand('XADD', outboxKey(partition), '*', 'r', text);
    request.writeCommand('INCRBY', outboxRowCountKey(partition), `${rows.length}`);
    for (const [field, count] of countAccepted(partitionCommits))
      request.writeCommand('HINCRBY', acceptedCountsKey(partition), field, `${count}`);
    for (const commit of partitionCommits) writeNotifications(request, commit);
  }
}

function writeNotifications(
  request: CommandEncoder,
  { partition, tenant, userId, webhookEvents, goalCheckAt }: LearnerCommit,
) {
  for (const event of webhookEvents) writeEvent(request, partition, event);
  // Never later than the scheduled check.
  if (goalCheckAt !== null)
    request.writeCommand(
      'ZADD',
      goalChecksKey(partition),
      'LT',
      `${goalCheckAt}`,
      learnerName(tenant, userId),
    );
}

function countAccepted(commits: readonly LearnerCommit[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { tenant, arrivalDays } of commits)
    for (const day of arrivalDays) {
      const field = acceptedField(tenant, day);
      counts.set(field, (counts.get(field) ?? 0) + 1);
    }
  return counts;
}

function writeCommit(request: CommandEncoder, commit: LearnerCommit, importId: string | null): void {
  const { partition, tenant, userId, learner, skills, ids, importLine } = commit;
  const key = learnerKey(partition, tenant, userId);
  request.command(4 + 2 * skills.length, 'HSET');
  request.text(key);
  request.text(learnerField);
  request.writeBytes(encodeLearner(learner));
  for (const [skillId, skill] of skills) {
    request.text(skillField(skillId));
    request.writeBytes(encodeSkill(skill));
  }
  if (ids.length > 0) {
    request.command(2 + 2 * ids.length, 'HSET');
    request.text(eventIdsKey(partition, tenant, userId));
    for (const [field, value] of ids) {
      request.text(field);
      request.writeBytes(value);
    }
  }
  writeItems(request, commit);
  // No WATCH: only this import writes the mark.
  if (importId !== null)
    request.writeCommand('HSET', importMarksKey(partition, importId), key, `${importLine}`);
}

function writeItems(request: CommandEncoder, commit: LearnerCommit): void {
  const { partition, tenant, userId, itemGeneration, learner, items } = commit;
  const { generation } = learner.items;
  // A new generation replaces the expired one with its parity.
  for (
    let newGeneration = Math.max(itemGeneration, generation - 2) + 1;
    newGeneration <= generation;
    newGeneration++
  )
    request.writeCommand('DEL', itemTracesKey(partition, newGeneration % 2, tenant, userId));
  for (const parity of [0, 1]) {
    const generationItems = items.filter(
      ([, item]) => item.generation >= generation - 1 && item.generation % 2 === parity,
    );
    if (generationItems.length === 0) continue;
    request.command(2 + 2 * generationItems.length, 'HSET');
    request.text(itemTracesKey(partition, parity, tenant, userId));
    for (const [id, { trace }] of generationItems) {
      request.writeBytes(id);
      request.writeBytes(encodeItem(trace));
    }
  }
}
