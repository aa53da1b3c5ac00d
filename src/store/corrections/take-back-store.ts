/** Writes a learner anew in Redis, without one answer. */
import { encodeCorrection, type RewriteCorrection } from '../../contracts/corrections.js';
import { type TakenBackAnswer, takenBackRow } from '../../contracts/journal.js';
import { learnerName } from '../../contracts/learner-name.js';
import { entriesOf } from '../../contracts/outbox-ids.js';
import type { ReplayedStates } from '../../domain/history/replay.js';
import { countAccepted } from '../learners/accepted.js';
import { dumpOf } from '../rebuild/learner-dump.js';
import { type RedisClient, whileRedisServes } from '../redis/client.js';
import { journalBound, partitionPrefix } from '../redis/keys.js';
import { replicated } from '../redis/replication.js';
import { takeBack } from './take-back-script.js';

export interface TakeBackCommit {
  readonly partition: number;
  /** Of the state that it was computed from. */
  readonly expectedVersion: number;
  readonly correction: RewriteCorrection;
  readonly answer: TakenBackAnswer;
  /** Null where no answer is left. */
  readonly states: ReplayedStates | null;
  /** Encoded attempt rows, in order. */
  readonly rows: readonly string[];
  /** Month of arrival, as 202601, of the oldest row that goes, the answer's own among them. */
  readonly month: number;
  /** UTC days on which answers arrived that are counted as accepted only now. */
  readonly arrivalDays: readonly number[];
}

export type TakeBackStatus = 'done' | 'conflict' | 'archived' | 'full' | 'emptied';

/** All of it or nothing. @throws ApiError UNAVAILABLE */
export async function commitTakeBack(
  client: RedisClient,
  commit: TakeBackCommit,
  outboxBound: number,
): Promise<TakeBackStatus> {
  const prefix = partitionPrefix(commit.partition);
  const args = argumentsOf(commit, outboxBound);
  const status = await replicated(client, prefix, () => whileRedisServes(takeBack(client, prefix, ...args)));
  return status as TakeBackStatus;
}

type Argument = string | number | Buffer;

function argumentsOf(commit: TakeBackCommit, outboxBound: number): Argument[] {
  const { expectedVersion, month, correction, answer, states, rows, arrivalDays } = commit;
  const { tenant, userId } = correction;
  const { records, items } = states === null ? { records: [], items: [[], []] as const } : dumpOf(states);
  return [
    ...[learnerName(tenant, userId), expectedVersion, outboxBound, journalBound, month],
    ...[encodeCorrection(correction), takenBackRow(answer), rows.length],
    ...[records, ...items].flatMap((fields) => counted(fields.flat())),
    ...counted(entriesOf(rows)),
    ...counted([...countAccepted([{ tenant, arrivalDays }])].flat()),
  ];
}

/** A list behind the number of its values. */
const counted = (values: readonly Argument[]): Argument[] => [values.length, ...values];
