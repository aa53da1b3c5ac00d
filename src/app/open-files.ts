/** Node has already raised the soft limit of open files to the hard limit. */
import { StartError } from '../lifecycle.js';
import type { Logger } from '../logger.js';

/** About 120 files were measured under load. */
const ownFiles = 256;
const fewestFiles = 128;
/** The embedded ClickHouse has the same limit. It opens 170 files within minutes, and more with each part. */
const lowFiles = 1024;
/** uWebSockets.js may buffer 16 KiB per connection if the client does not read its response. */
const mostConnections = 10_000;

/** Infinity without a limit. */
const files = openFileLimit();

function openFileLimit(): number {
  // Otherwise the report resolves the host name of each socket.
  Object.assign(process.report, { excludeNetwork: true });
  const { userLimits } = process.report.getReport() as {
    userLimits?: { open_files?: { soft?: number | string } };
  };
  const soft = Number(userLimits?.open_files?.soft);
  return Number.isNaN(soft) ? Number.POSITIVE_INFINITY : soft;
}

export const connectionBound = (): number =>
  Math.min(mostConnections, Math.max(files - ownFiles, Math.floor(files / 2)));

/** @throws StartError if the limit is too low to run */
export function checkOpenFiles(logger: Logger): void {
  const advice = `type ulimit -n ${4 * lowFiles} before the start`;
  if (files < fewestFiles)
    throw new StartError(
      `ulimit -n: ${files} open files are too few, ${fewestFiles} are the least; ${advice}`,
    );
  const taken = `so that ${connectionBound()} connections are taken`;
  if (files < lowFiles) logger.warn(`ulimit -n: only ${files} open files are allowed, ${taken}; ${advice}`);
}
