/** Node has already raised the soft limit of open files to the hard limit. */
import { StartError } from '../../lifecycle.js';
import type { Logger } from '../../logger.js';

/** About 120 files were measured under load. */
const reservedFiles = 256;
const minFiles = 128;
/** The embedded ClickHouse has the same limit. It opens 170 files within minutes, and more with each part. */
const warnBelowFiles = 1024;
/** uWebSockets.js may buffer 16 KiB per connection if the client does not read its response. */
const maxConnections = 10_000;

/** Infinity without a limit. */
const fileLimit = readFileLimit();

function readFileLimit(): number {
  // Otherwise the report resolves the host name of each socket.
  Object.assign(process.report, { excludeNetwork: true });
  const { userLimits } = process.report.getReport() as {
    userLimits?: { open_files?: { soft?: number | string } };
  };
  const soft = Number(userLimits?.open_files?.soft);
  return Number.isNaN(soft) ? Number.POSITIVE_INFINITY : soft;
}

export const computeConnectionLimit = (): number =>
  Math.min(maxConnections, Math.max(fileLimit - reservedFiles, Math.floor(fileLimit / 2)));

/** @throws StartError if the limit is too low to run */
export function checkOpenFiles(logger: Logger): void {
  const advice = `Run ulimit -n ${4 * warnBelowFiles} before startup.`;
  if (fileLimit < minFiles)
    throw new StartError(
      `ulimit -n: the limit of ${fileLimit} open files is too low; the minimum is ${minFiles}. ${advice}`,
    );
  const taken = `so at most ${computeConnectionLimit()} connections are accepted`;
  if (fileLimit < warnBelowFiles)
    logger.warn(`ulimit -n: the limit is ${fileLimit} open files, ${taken}. ${advice}`);
}
