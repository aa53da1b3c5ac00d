/** Looks for event ids that are over, of learners who did not come back. */
import { setTimeout as sleep } from 'node:timers/promises';
import { groupedBy, inParts } from '../../lists.js';
import { scanKeys } from '../rebuild/learner-scan.js';
import { type RedisClient, whileRedisServes } from '../redis/client.js';
import { idSweepKey } from '../redis/keys.js';
import { takeTurn } from '../redis/lock.js';
import { idWindowSeconds } from './id-ledger.js';

/** With a look that was missed, because its process died, ids are gone 33 hours after they came. */
const sweepHours = 4;
/** Clocks of processes may differ by so much. */
const clockDifferenceSeconds = 3600;
/** Learners of one script call: Redis does nothing else meanwhile, about half a millisecond where they have 50 ids each. */
const together = 25;
/** Redis has time for others between two pages. */
const pauseMs = 5;

const idsPattern = 'st:{p*}:e:*';
/** A learner's name may hold what the pattern asks for. */
const idsKey = /^st:\{p\d+\}:e:/;

/** Forgets all that are over. @returns how many */
export async function sweepIds(client: RedisClient, nowMs: number): Promise<number> {
  const cutoff = Math.floor(nowMs / 1000) - idWindowSeconds - clockDifferenceSeconds;
  let forgotten = 0;
  for await (const [, keys] of scanKeys(client, idsPattern)) {
    for (const group of groupsOf(keys.filter((key) => idsKey.test(key))))
      forgotten += await whileRedisServes(client.sweepIds(group.length, ...group, cutoff));
    await sleep(pauseMs);
  }
  return forgotten;
}

/** A script may touch one slot of a Cluster. */
const groupsOf = (keys: readonly string[]): string[][] =>
  [...groupedBy(keys, (key) => key.slice(0, key.indexOf('}'))).values()].flatMap((own) =>
    inParts(own, together),
  );

/** Whether it is this process' turn to look: one does every few hours. */
export const takeSweepTurn = (client: RedisClient): Promise<boolean> =>
  takeTurn(client, idSweepKey, sweepHours * 3600);
