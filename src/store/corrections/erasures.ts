/** Erasures in Redis: a record each in the learner's partition, until it is done. */
import { randomUUID } from 'node:crypto';
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { encodeCorrection } from '../../contracts/corrections.js';
import { learnerHash, learnerName } from '../../contracts/learner-name.js';
import type { BegunErasure, ErasureStore, OpenErasure } from '../../services/corrections/erasure-ports.js';
import { decodeEach, refuseUnreadable, type TellUnreadable } from '../learners/decode-each.js';
import { type RedisClient, whileRedisServes } from '../redis/client.js';
import { erasuresKey, partitionOf, partitionPrefix } from '../redis/keys.js';
import { takeTurn } from '../redis/lock.js';
import { replicated } from '../redis/replication.js';
import { closeErasure, eraseLearner } from './correction-scripts.js';

/** Most erasures of a partition that are not done. */
const mostOpen = 10_000;
/** Most learners of a partition that are remembered as erased: 15 MB. */
const mostEnded = 100_000;

/** There for a day after deleted rows were last taken off the disk, and for an hour after looking for late ones. */
const purgeTurnKey = 'st:purged';
const daySeconds = 86_400;
const lookTurnKey = 'st:erased:looked';
const hourSeconds = 3600;

/** An id begins with the number of the partition, which says where its record is. */
const idShape = /^(\d{1,5})-[0-9a-f-]{36}$/;

/** @param tell of erasures that cannot be read, when all are asked for: they stay open, and the others are given */
export function createErasureStore(
  client: RedisClient,
  partitions: number,
  tell: TellUnreadable = refuseUnreadable,
): ErasureStore {
  async function begin(tenant: string, userId: string): Promise<BegunErasure> {
    const partition = partitionOf(tenant, userId, partitions);
    const erasureId = `${partition}-${randomUUID()}`;
    const record = JSON.stringify({ v: 1, tenant, userId });
    const correction = encodeCorrection({ v: 1, kind: 'erase', erasureId, tenant, userId, goalAt: 0 });
    const prefix = partitionPrefix(partition);
    const name = learnerName(tenant, userId);
    const call = () =>
      eraseLearner(
        client,
        ...([prefix, name, erasureId, record, correction, mostOpen] as const),
        ...([learnerHash(tenant, userId), mostEnded] as const),
      );
    const [status, id] = await replicated(client, prefix, () => whileRedisServes(call()));
    return (id === '' ? { status } : { status, id }) as BegunErasure;
  }

  async function openIn(partition: number): Promise<OpenErasure[]> {
    const stored = await whileRedisServes(client.hgetall(erasuresKey(partition)));
    const own = Object.fromEntries(Object.entries(stored).filter(([id]) => !id.startsWith('@')));
    return decodeEach(own, (id, text) => decode(id, partition, text), tell);
  }

  return {
    begin,
    find: async (id) => {
      const partition = Number(idShape.exec(id)?.[1] ?? partitions);
      if (partition >= partitions) return null;
      const text = await whileRedisServes(client.hget(erasuresKey(partition), id));
      return text === null ? null : decode(id, partition, text);
    },
    open: async () => {
      const all = await Promise.all(Array.from({ length: partitions }, (_, partition) => openIn(partition)));
      return all.flat();
    },
    takeDailyTurn: () => takeTurn(client, purgeTurnKey, daySeconds),
    takeHourlyTurn: () => takeTurn(client, lookTurnKey, hourSeconds),
    close: async ({ id, tenant, userId, partition }) => {
      await whileRedisServes(
        closeErasure(client, partitionPrefix(partition), id, learnerName(tenant, userId)),
      );
    },
  };
}

const Stored = Type.Object({
  v: Type.Literal(1),
  tenant: Type.String(),
  userId: Type.String(),
  requestedAt: Type.Integer(),
  correction: Type.String(),
  goalAt: Type.Integer(),
  removed: Type.Object({ records: Type.Integer(), items: Type.Integer() }),
  before: Type.Optional(Type.Record(Type.String(), Type.Integer())),
});
const storedCheck = Compile(Stored);

/** @throws Error for what this version of the service does not know */
function decode(id: string, partition: number, text: string): OpenErasure {
  const stored: unknown = JSON.parse(text);
  if (!storedCheck.Check(stored)) throw new Error('an erasure is not known to this version');
  const { v: _, ...record } = stored;
  return { ...record, id, partition, before: record.before ?? null };
}
