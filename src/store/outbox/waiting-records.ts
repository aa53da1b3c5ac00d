/** A learner's goals, forecasts and answers taken back, on their way to ClickHouse. */
import type { ExportRecord } from '../../contracts/export-record.js';
import {
  type JournalKind,
  journalColumns,
  journalFields,
  learnerRowPrefix,
} from '../../contracts/journal.js';
import { rowsInStream } from '../learners/learner-entries.js';
import type { Placed } from '../learners/learner-records.js';
import type { RedisClient } from '../redis/client.js';
import { forecastsKey, journalKey, parkedKey } from '../redis/keys.js';

const recordTypes = {
  goal: 'goal_change',
  forecast: 'served_forecast',
  taken_back: 'taken_back',
} as const;
type Kind = keyof typeof recordTypes & JournalKind;

/** Forecasts of a class of learners may wait in any partition. */
export async function* waitingRecords(
  client: RedisClient,
  { partition, tenant, userId }: Placed,
  partitions: number,
): AsyncGenerator<readonly ExportRecord[]> {
  const prefix = learnerRowPrefix(tenant, userId);
  const pages = (kinds: readonly Kind[], key: string) => recordsIn(client, kinds, key, prefix);
  yield* pages(['goal', 'taken_back'], journalKey(partition));
  for (let each = 0; each < partitions; each++) yield* pages(['forecast'], forecastsKey(each));
}

async function* recordsIn(
  client: RedisClient,
  kinds: readonly Kind[],
  source: string,
  prefix: string,
): AsyncGenerator<readonly ExportRecord[]> {
  for (const [place, key] of [
    ['journal', source],
    ['parked', parkedKey(source)],
  ] as const) {
    for await (const rows of rowsInStream(client, key, prefix, 1))
      yield rows.flatMap((row) => {
        const kind = kindOf(kinds, row);
        return kind === undefined ? [] : [{ type: recordTypes[kind], place, ...journalFields(kind, row) }];
      });
  }
}

/** Kinds that share a stream have different numbers of columns. */
const kindOf = (kinds: readonly Kind[], row: string): Kind | undefined =>
  kinds.find((kind) => journalColumns[kind].length === row.split('\t').length);
