/** Moves learners that were kept otherwise aside, under names that nobody looks for and that end by themselves. */
import type { Redis } from 'ioredis';
import type { ReplaceStore } from '../../services/rebuild/replace.js';
import { type RedisClient, resultsOf, whileRedisServes } from '../redis/client.js';
import { notedKept, type OtherVersion, replacesField } from '../redis/deployment.js';
import { scanKeys } from '../redis/fan-out.js';
import {
  asideKey,
  catalogueJournalKey,
  erasuresKey,
  journalKey,
  markerKey,
  metaKey,
  outboxKey,
  parkedKey,
} from '../redis/keys.js';
import { streamLengths } from '../redis/streams.js';
import { checkpointKey } from './rebuild-store.js';

/** How long what was moved stays, in days. */
export const asideDays = 7;

const partitionPattern = 'st:{p*}:*';
/** Learners and their items. */
const movedKey = /^st:\{p\d+\}:(l|h[01]):/;
/** Event ids, as they were kept with their partition: a rebuild restores them. */
const droppedKey = /^st:\{p\d+\}:i:/;

/** @param deployment whose learners there are */
export function createReplaceStore(
  client: RedisClient,
  { version, layout, partitions }: Pick<OtherVersion, 'version' | 'layout' | 'partitions'>,
): ReplaceStore {
  const all = Array.from({ length: partitions }, (_, partition) => partition);
  const markers = all.map((partition) => markerKey(partition, { version, layout }));
  return {
    waiting: () => waitingIn(client, all),
    moveMarkers: async () => {
      for (const marker of markers) await renameIfThere(client, marker, asideKey(marker, version));
    },
    putMarkersBack: async () => {
      for (const marker of markers) await renameIfThere(client, asideKey(marker, version), marker);
    },
    decide: async () => {
      await whileRedisServes(client.hset(metaKey, replacesField, `${version}`));
    },
    isDecided: async () => (await whileRedisServes(client.hexists(metaKey, replacesField))) === 1,
    moveLearners: async (onMoved) => {
      let moved = 0;
      for await (const [node, keys] of scanKeys(client, partitionPattern)) {
        const found = keys.filter((key) => movedKey.test(key));
        await moveAside(node, found, version);
        await drop(
          node,
          keys.filter((key) => droppedKey.test(key)),
        );
        moved += found.length;
        onMoved(moved);
      }
      return moved;
    },
    finish: async () => {
      for (const marker of markers) await whileRedisServes(client.del(asideKey(marker, version)));
      await whileRedisServes(client.del(checkpointKey));
      const noted = client.multi().hset(metaKey, notedKept);
      await whileRedisServes(resultsOf(noted.hdel(metaKey, replacesField)));
    },
  };
}

async function renameIfThere(client: RedisClient, from: string, to: string): Promise<void> {
  if ((await whileRedisServes(client.exists(from))) === 1) await whileRedisServes(client.rename(from, to));
}

/** A kill in between leaves nothing that stays for ever. */
async function moveAside(node: Redis, keys: readonly string[], version: number): Promise<void> {
  const commands = node.pipeline();
  for (const key of keys) commands.expire(key, 86_400 * asideDays).rename(key, asideKey(key, version));
  await whileRedisServes(resultsOf(commands));
}

async function drop(node: Redis, keys: readonly string[]): Promise<void> {
  const commands = node.pipeline();
  for (const key of keys) commands.unlink(key);
  await whileRedisServes(resultsOf(commands));
}

/** Forecasts on their way may stay: no rebuild restores anything from them. */
async function waitingIn(client: RedisClient, partitions: readonly number[]): Promise<string[]> {
  const lengthOf = async (keys: readonly string[]): Promise<number> =>
    (await whileRedisServes(streamLengths(client, keys))).reduce((sum, length) => sum + length, 0);
  const outboxes = partitions.map(outboxKey);
  const journals = [...partitions.map(journalKey), catalogueJournalKey];
  const erasures = await whileRedisServes(
    Promise.all(partitions.map((partition) => client.hlen(erasuresKey(partition)))),
  );
  const found: readonly (readonly [number, string])[] = [
    [await lengthOf(outboxes), 'in outboxes'],
    [await lengthOf(journals), 'in journals'],
    [await lengthOf([...outboxes, ...journals].map(parkedKey)), 'parked'],
    // Two fields each.
    [erasures.reduce((sum, fields) => sum + fields, 0) / 2, 'erasures under way'],
  ];
  return found.flatMap(([count, what]) => (count === 0 ? [] : `${count} ${what}`));
}
