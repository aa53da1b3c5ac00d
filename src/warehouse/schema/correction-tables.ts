/** What is kept of corrections: answers that were taken back, and receipts of erasures. */
import type { Column, Table } from '../clickhouse/table.js';

const settings = { fsync_after_insert: 1, fsync_part_directory: 1 };
const tenant: Column = { name: 'tenant', type: 'LowCardinality(String)', comment: 'Owner of the learner' };
const time = (name: string, comment: string): Column => ({
  name,
  type: "DateTime64(3, 'UTC')",
  codec: 'Delta, ZSTD(1)',
  comment,
});

export const takenBack: Table = {
  name: 'taken_back',
  comment: 'One row for every answer that was taken back; it may stand here twice until parts are merged',
  engine: 'ReplacingMergeTree',
  columns: [
    tenant,
    { name: 'user_id', type: 'String', codec: 'ZSTD(1)', comment: 'Learner' },
    { name: 'event_id', type: 'String', codec: 'ZSTD(1)', comment: "Caller's id of the answer" },
    { name: 'skill_id', type: 'LowCardinality(String)', comment: 'Skill that it was on' },
    {
      name: 'learner_seq',
      type: 'UInt32',
      comment: 'Number that it had within the learner; later answers have one less since',
    },
    time('received_at', 'When it had arrived'),
    time('taken_back_at', 'When it was taken back, by the clock of Redis'),
    {
      name: 'first_answer',
      type: 'String',
      codec: 'ZSTD(1)',
      comment:
        'What a repeat of its event is told, in base64 (src/store/learners/event-ids.ts); empty: its id was forgotten',
    },
  ],
  orderBy: '(tenant, user_id, taken_back_at, event_id)',
  shardBy: 'cityHash64(tenant, user_id)',
  settings,
};

export const erasures: Table = {
  name: 'erasures',
  comment:
    'One row for every learner who was erased, without saying whom; possibly twice until parts are merged',
  engine: 'ReplacingMergeTree',
  columns: [
    tenant,
    { name: 'erasure_id', type: 'String', comment: 'As the caller was told' },
    time('requested_at', 'When it was asked for'),
    time('done_at', 'When nothing was left'),
    { name: 'receipt', type: 'String', codec: 'ZSTD(1)', comment: 'Counts and proving query, as JSON' },
  ],
  orderBy: '(tenant, erasure_id)',
  shardBy: 'cityHash64(erasure_id)',
  settings,
};
