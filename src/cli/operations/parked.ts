import { dayMs } from '../../domain/base/common.js';
import { formatJsonLine } from '../../lab/report/format.js';
import { describeParkedRow } from '../../services/corrections/list-parked.js';
import { createParkedRows, type ParkedEntry, type RedriveCounts } from '../../store/corrections/redrive.js';
import { defineArguments, flag, integerOption, UsageError } from '../support/arguments.js';
import { defineCommand } from '../support/command.js';
import { openRedisOnly } from '../support/servers.js';

export const main = defineCommand({
  name: 'parked',
  ...defineArguments({
    usage: 'npm run parked -- list|redrive [options]',
    about: `Lists or redrives dead-letter rows: rows that ClickHouse rejected because of their content.

  list     prints stream, id, tenant, reason and age of each row
  redrive  requeues all rows; run it after you have fixed the cause`,
    options: {
      partition: integerOption(
        0,
        65_535,
        'only rows of this partition, 0 to 65535 (default: all partitions)',
      ),
      json: flag('print the list as one JSON object per line, with parked_at instead of the age'),
    },
    examples: ['npm run parked -- list', 'npm run parked -- redrive'],
    notes: `redrive dead-letters a row again if ClickHouse rejects it again, and deletes rows of erased learners.
The list omits user ids, because an erasure cannot reach a copy of the list. The full row is in the Redis stream
STREAM:parked, where STREAM is the first column.

It connects to Redis at REDIS_URL or of the service running on DATA_DIR, or starts the embedded servers itself.`,
    read: (values, { operands: [action, ...rest] }) => {
      if (rest.length > 0 || (action !== 'list' && action !== 'redrive'))
        throw new UsageError('Pass list or redrive');
      if (action === 'redrive' && values.json) throw new UsageError('--json applies only to list');
      return { ...values, action };
    },
  }),
  run: async (context, { action, partition, json }) => {
    const parked = createParkedRows(await openRedisOnly(context));
    const streams = await parked.listStreams(partition);
    if (action === 'redrive') return context.print(formatRedriven(await parked.redrive(streams)));
    const print = json ? formatJson : formatLine;
    if (!json) context.print(['STREAM', 'ID', 'TENANT', 'REASON', 'AGE'].join('\t'));
    // Prints while it reads, because the list can be long.
    for await (const entry of parked.listEntries(streams)) context.print(print(entry));
  },
});

const formatJson = (entry: ParkedEntry): string => formatJsonLine(describeParkedRow(entry));

/** Tab-separated, for other tools. */
const formatLine = ({ stream, id, tenant, reason, parkedAt }: ParkedEntry): string =>
  [stream, id, tenant ?? '-', reason, formatAge(Date.now() - parkedAt)].join('\t');

function formatRedriven({ moved, stayed, erased }: RedriveCounts): string {
  const wait = 'their stream is full, or a correction is pending. Run redrive again later';
  return [
    `${moved} rows requeued`,
    ...(erased > 0 ? [`${erased} rows of erased learners deleted`] : []),
    ...(stayed > 0 ? [`${stayed} rows remain dead-lettered: ${wait}`] : []),
  ].join('\n');
}

function formatAge(ms: number): string {
  const units = [
    ['d', dayMs],
    ['h', 3_600_000],
    ['min', 60_000],
  ] as const;
  const [unit, size] = units.find(([, size]) => ms >= size) ?? ['s', 1000];
  return `${Math.max(0, Math.floor(ms / size))} ${unit}`;
}
