/** Writes a learner anew in Redis, without one answer. */
import { encodeCorrection, type RewriteCorrection } from '../contracts/corrections.js';
import { type TakenBackAnswer, takenBackRow } from '../contracts/journal.js';
import { learnerName } from '../contracts/learner-name.js';
import type { ReplayedStates } from '../domain/replay.js';
import { countAccepted } from './accepted.js';
import { type RedisClient, whileRedisServes } from './client.js';
import { journalBound, partitionPrefix } from './keys.js';
import { dumpOf, type Fields } from './learner-dump.js';
import { createPacker, type Packer } from './packer.js';
import { replicated } from './replication.js';

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

/** Values of one command, which Lua hands over on its stack. */
const together = 1000;

/** All of it or nothing. @throws ApiError UNAVAILABLE */
export async function commitTakeBack(
  client: RedisClient,
  commit: TakeBackCommit,
  outboxBound: number,
): Promise<TakeBackStatus> {
  const prefix = partitionPrefix(commit.partition);
  const request = packCommit(commit, outboxBound);
  const status = await replicated(client, prefix, () => whileRedisServes(client.takeBack(prefix, request)));
  return status as TakeBackStatus;
}

function packCommit(commit: TakeBackCommit, outboxBound: number): Buffer {
  const { partition, correction, answer, states, arrivalDays } = commit;
  const { tenant, userId } = correction;
  const { records, items } = states === null ? { records: [], items: [[], []] as const } : dumpOf(states);
  const request = createPacker();
  request.list(12);
  request.text(learnerName(tenant, userId));
  request.uint(commit.expectedVersion);
  request.uint(outboxBound);
  request.uint(journalBound);
  request.uint(commit.month);
  request.text(encodeCorrection(correction));
  request.text(takenBackRow(answer));
  packPieces(request, flat(records));
  packPieces(request, commit.rows);
  packPieces(request, flat(items[0]));
  packPieces(request, flat(items[1]));
  const accepted = [...(countAccepted([{ partition, tenant, arrivalDays }]).get(partition) ?? [])];
  request.list(2 * accepted.length);
  for (const [field, count] of accepted) {
    request.text(field);
    request.uint(count);
  }
  return request.done();
}

const flat = (fields: Fields): Buffer[] => fields.flat();

function packPieces(request: Packer, values: readonly (Buffer | string)[]): void {
  request.list(Math.ceil(values.length / together));
  for (let at = 0; at < values.length; at += together) {
    const piece = values.slice(at, at + together);
    request.list(piece.length);
    for (const value of piece) {
      if (typeof value === 'string') request.text(value);
      else request.bytes(value);
    }
  }
}
