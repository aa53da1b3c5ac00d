/** Lists rows that ClickHouse refused and that were put aside, and puts them back. */
import { joinOrStart } from '../embedded/servers.js';
import {
  type ParkedEntry,
  parkableStreams,
  parkedEntries,
  redrive,
} from '../store/corrections/parked-rows.js';
import type { RedisClient } from '../store/redis/client.js';
import { openRedis } from '../store/redis/open-redis.js';
import { parseArguments, readInteger, usageOf } from './arguments.js';
import { type CommandContext, commandOf } from './command.js';

const help = `Usage: npm run parked -- list [--json] [--partition N]
       npm run parked -- redrive [--partition N]

Rows that ClickHouse refuses for what they say are put aside, so that they hold up no others.

list shows the stream that each was in, its id there, its tenant, why it was refused and how long ago.
redrive puts all of them back, behind what waits: once the cause is mended they are stored as if nothing
had been. A row that is refused again is put aside again. Rows from before their learner was erased go.

Options:
  --partition N  only what was in the streams of this partition (default: everything)
  --json         one JSON object a line, with the time as parked_at

The learner is not shown: a list may be kept and passed on, and erasing a learner could not reach it. The row
itself is in the stream that has the name of the first column and :parked behind it.

The rows of the service that runs on DATA_DIR (or at REDIS_URL) are meant; where none runs, its servers are
started for the moment.
`;

const options = {
  json: { type: 'boolean' },
  partition: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const;

const usage = usageOf('npm run parked -- list|redrive');
const maxPartition = 65_535;

/** Does the work on the streams; writes lines of the result as it goes. */
type Action = (redis: RedisClient, streams: readonly string[], write: Write) => Promise<void>;
type Write = (text: string) => void;

interface Wanted {
  readonly action: Action;
  readonly partition: number | null;
}

export const main = commandOf({ name: 'parked', help, read: readWanted, work });

async function work(context: CommandContext, { action, partition }: Wanted): Promise<void> {
  const { config, logger, closers } = context;
  const redisUrl = config.redisUrl ?? (await joinOrStart(config, logger, closers)).redisUrl;
  const redis = await openRedis(redisUrl, context);
  const write: Write = (text) => {
    context.stdout.write(text);
  };
  await action(redis, await parkableStreams(redis, partition), write);
}

function readWanted(argv: readonly string[]): Wanted | null {
  const { values, positionals } = parseArguments(usage, argv, options);
  if (values.help) return null;
  const [command, ...rest] = positionals;
  if (rest.length > 0 || (command !== 'list' && command !== 'redrive'))
    throw usage('list or redrive is needed');
  if (command === 'redrive' && values.json) throw usage('only list takes --json');
  const partition =
    values.partition === undefined
      ? null
      : readInteger(usage, '--partition', values.partition, 0, maxPartition);
  const list = values.json ? listJson : listText;
  return { action: command === 'list' ? list : redriveAll, partition };
}

const listJson: Action = (redis, streams, write) =>
  forEachParked(redis, streams, write, ({ parkedAt, ...entry }) =>
    JSON.stringify({ ...entry, parked_at: new Date(parkedAt).toISOString() }),
  );

const columns = ['STREAM', 'ID', 'TENANT', 'REASON', 'AGE'] as const;

/** Written as it is read, so that a long list takes no memory; tabs keep the columns apart for other tools. */
const listText: Action = async (redis, streams, write) => {
  write(`${columns.join('\t')}\n`);
  await forEachParked(redis, streams, write, ({ stream, id, tenant, reason, parkedAt }) =>
    [stream, id, tenant ?? '-', reason, ageOf(Date.now() - parkedAt)].join('\t'),
  );
};

async function forEachParked(
  redis: RedisClient,
  streams: readonly string[],
  write: Write,
  line: (entry: ParkedEntry) => string,
): Promise<void> {
  for (const stream of streams) {
    for await (const entry of parkedEntries(redis, stream)) write(`${line(entry)}\n`);
  }
}

const redriveAll: Action = async (redis, streams, write) => {
  let moved = 0;
  let stayed = 0;
  let erased = 0;
  for (const stream of streams) {
    const outcome = await redrive(redis, stream);
    moved += outcome.moved;
    stayed += outcome.stayed;
    erased += outcome.erased;
  }
  write(`put back ${moved}\n`);
  if (erased > 0) write(`${erased} were of learners who were erased, and are gone\n`);
  if (stayed > 0)
    write(`${stayed} stay parked: too many rows or a correction wait before them, try again later\n`);
};

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
] as const;

/** In the largest unit that it fills. */
function ageOf(ms: number): string {
  const [unit, size] = units.find(([, size]) => ms >= size) ?? units[units.length - 1] ?? ['s', 1000];
  return `${Math.max(0, Math.floor(ms / size))} ${unit}`;
}
