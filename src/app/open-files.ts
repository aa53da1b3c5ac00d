/** How many files and sockets this process may have open. Node has raised the soft limit to the hard one already. */
import { StartError } from '../lifecycle.js';
import type { Logger } from '../telemetry.js';

/** Of the service itself: connections to both servers, threads, files. About 120 were seen under load. */
const ownFiles = 256;
/** Below it not even the service's own are there. */
const fewestFiles = 128;
/** The embedded ClickHouse, which has the same limit, holds 170 after minutes, and more with every part. */
const lowFiles = 1024;
/** Each may leave an answer of up to 16 KiB with uWebSockets.js that its client never reads. */
const mostConnections = 10_000;

/** Infinity where there is no limit. */
const files = openFileLimit();

function openFileLimit(): number {
  // Else it would ask the name service who is at the other end of each socket.
  Object.assign(process.report, { excludeNetwork: true });
  const { userLimits } = process.report.getReport() as {
    userLimits?: { open_files?: { soft?: number | string } };
  };
  const soft = Number(userLimits?.open_files?.soft);
  return Number.isNaN(soft) ? Number.POSITIVE_INFINITY : soft;
}

/** Most connections of clients: what they leave must do for everything else. */
export const connectionBound = (): number =>
  Math.min(mostConnections, Math.max(files - ownFiles, Math.floor(files / 2)));

/** Warns of a low limit. @throws StartError for one with which nothing goes */
export function checkOpenFiles(logger: Logger): void {
  const advice = `type ulimit -n ${4 * lowFiles} before the start`;
  if (files < fewestFiles)
    throw new StartError(
      `ulimit -n: ${files} open files are too few, ${fewestFiles} are the least; ${advice}`,
    );
  const taken = `so that ${connectionBound()} connections are taken`;
  if (files < lowFiles) logger.warn(`ulimit -n: only ${files} open files are allowed, ${taken}; ${advice}`);
}
