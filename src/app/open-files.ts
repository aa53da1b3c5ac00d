/** Limits of open files and sockets. Node has already raised the soft limit to the hard limit. */
import { StartError } from '../lifecycle.js';
import type { Logger } from '../telemetry.js';

/** Files of the service itself: connections to both servers, threads. About 120 were measured under load. */
const ownFiles = 256;
/** Minimum for the service itself. */
const fewestFiles = 128;
/** The embedded ClickHouse has the same limit. It holds 170 files after minutes, and more with each part. */
const lowFiles = 1024;
/** Per connection, uWebSockets.js may keep 16 KiB of a response that the client never reads. */
const mostConnections = 10_000;

/** Infinity without a limit. */
const files = openFileLimit();

function openFileLimit(): number {
  // Otherwise the report looks up the host name of each socket.
  Object.assign(process.report, { excludeNetwork: true });
  const { userLimits } = process.report.getReport() as {
    userLimits?: { open_files?: { soft?: number | string } };
  };
  const soft = Number(userLimits?.open_files?.soft);
  return Number.isNaN(soft) ? Number.POSITIVE_INFINITY : soft;
}

/** Limit of client connections. The rest of the files is for everything else. */
export const connectionBound = (): number =>
  Math.min(mostConnections, Math.max(files - ownFiles, Math.floor(files / 2)));

/** Warns about a low limit. @throws StartError if the service cannot run with it */
export function checkOpenFiles(logger: Logger): void {
  const advice = `type ulimit -n ${4 * lowFiles} before the start`;
  if (files < fewestFiles)
    throw new StartError(
      `ulimit -n: ${files} open files are too few, ${fewestFiles} are the least; ${advice}`,
    );
  const taken = `so that ${connectionBound()} connections are taken`;
  if (files < lowFiles) logger.warn(`ulimit -n: only ${files} open files are allowed, ${taken}; ${advice}`);
}
