/** A learner's goals and forecasts on their way to ClickHouse. */
import { type JournalKind, journalFields, learnerRowPrefix } from '../contracts/journal.js';
import type { ToldRecord } from '../services/export-ports.js';
import type { RedisClient } from './client.js';
import { forecastsKey, journalKey, parkedKey } from './keys.js';
import { rowsInStream } from './learner-entries.js';
import type { Placed } from './learner-records.js';

const recordTypes = { goal: 'goal_change', forecast: 'served_forecast' } as const;
type Kind = keyof typeof recordTypes & JournalKind;

/** Forecasts of a class of learners may wait in any partition. */
export async function* waitingRecords(
  client: RedisClient,
  { partition, tenant, userId }: Placed,
  partitions: number,
): AsyncGenerator<readonly ToldRecord[]> {
  const prefix = learnerRowPrefix(tenant, userId);
  const pages = (kind: Kind, key: string) => recordsIn(client, kind, key, prefix);
  yield* pages('goal', journalKey(partition));
  for (let each = 0; each < partitions; each++) yield* pages('forecast', forecastsKey(each));
}

async function* recordsIn(
  client: RedisClient,
  kind: Kind,
  source: string,
  prefix: string,
): AsyncGenerator<readonly ToldRecord[]> {
  for (const [place, key] of [
    ['journal', source],
    ['parked', parkedKey(source)],
  ] as const) {
    for await (const rows of rowsInStream(client, key, prefix, 1))
      yield rows.map((row) => ({ type: recordTypes[kind], place, ...journalFields(kind, row) }));
  }
}
