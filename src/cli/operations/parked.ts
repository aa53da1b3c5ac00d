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
    about: `Rows that ClickHouse refuses for what they say are put aside, so that they hold up no others.

list shows the stream that each was in, its id there, its tenant, why it was refused and how long ago.
redrive puts all of them back, behind what waits: once the cause is mended they are stored as if nothing
had been. A row that is refused again is put aside again. Rows from before their learner was erased go.`,
    options: {
      partition: integerOption(
        0,
        65_535,
        'only what was in the streams of this partition (default: everything)',
      ),
      json: flag('of list: one JSON object a line, with the time as parked_at'),
    },
    notes: `The learner is not shown: a list may be kept and passed on, and erasing a learner could not reach it. The row
itself is in the stream that has the name of the first column and :parked behind it.

The rows of the service that runs on DATA_DIR (or at REDIS_URL) are meant; where none runs, its servers are
started for the moment.`,
    read: (values, { operands: [action, ...rest] }) => {
      if (rest.length > 0 || (action !== 'list' && action !== 'redrive'))
        throw new UsageError('list or redrive is needed');
      if (action === 'redrive' && values.json) throw new UsageError('only list takes --json');
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
  const wait = 'too many rows or a correction wait before them, try again later';
  return [
    `put back ${moved}`,
    ...(erased > 0 ? [`${erased} were of learners who were erased, and are gone`] : []),
    ...(stayed > 0 ? [`${stayed} stay parked: ${wait}`] : []),
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
