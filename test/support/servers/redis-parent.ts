// A process that owns an embedded Redis, for tests that kill it: prints {"url","pid"} and waits.
import { findFreePort } from '../../../src/embedded/free-port.js';
import { startRedis } from '../../../src/embedded/start-redis.js';
import { createLogger } from '../../../src/logger.js';

const [, , dir = '.'] = process.argv;
const logger = createLogger('warn', 'redis-parent');
const server = startRedis({ dir, port: await findFreePort(), password: 'test', fsync: 'everysec', logger });
await server.ready;
process.stdout.write(`${JSON.stringify({ url: server.url, pid: server.pid() })}\n`);
setInterval(() => undefined, 60_000);
