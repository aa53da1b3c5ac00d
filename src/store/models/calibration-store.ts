import { Type } from 'typebox';
import { createStoredParser } from '../../contracts/schema/stored-json.js';
import type { IntervalCalibration } from '../../domain/prediction/interval-calibration.js';
import { mapRedisErrors, type RedisClient } from '../redis/connection/client.js';
import { calibratedTenantsKey, calibrationKey } from '../redis/keys.js';

const Factor = Type.Number({ exclusiveMinimum: 0 });
const Positions = Type.Array(Type.Number(), { minItems: 1, maxItems: 100 });
const parseStored = createStoredParser(
  Type.Object({
    v: Type.Literal(1),
    /** False: for the default intervals. */
    isFitted: Type.Boolean(),
    ...{ at: Type.Integer(), outcomes: Type.Integer(), learners: Type.Integer() },
    ...{ histories: Positions, horizons: Positions },
    cells: Type.Array(Type.Object({ below: Factor, above: Factor }), { minItems: 1 }),
  }),
  'a stored calibration',
);

/** @returns null for none, and for an unreadable one */
export async function readCalibration(
  client: RedisClient,
  tenant: string,
  onUnreadable: (error: unknown) => void = () => undefined,
): Promise<ReturnType<typeof parseStored> | null> {
  const text = await mapRedisErrors(client.get(calibrationKey(tenant)));
  try {
    return text === null ? null : parseStored(text);
  } catch (error) {
    onUnreadable(error);
    return null;
  }
}

/** Writes the time last: readers load the calibration when the time changes. @param calibration null: remove */
export async function saveCalibration(
  client: RedisClient,
  tenant: string,
  calibration: IntervalCalibration | null,
  isFitted = false,
): Promise<void> {
  if (calibration === null) {
    await mapRedisErrors(client.unlink(calibrationKey(tenant)));
    await mapRedisErrors(client.hdel(calibratedTenantsKey, tenant));
    return;
  }
  const text = JSON.stringify({ v: 1, isFitted, ...calibration });
  // Throws for NaN.
  parseStored(text);
  await mapRedisErrors(client.set(calibrationKey(tenant), text));
  await mapRedisErrors(client.hset(calibratedTenantsKey, tenant, calibration.at));
}
