import { type DestinationStream, type Logger, pino } from 'pino';

export type { Logger };

declare module 'pino' {
  /** Keys that every line has: a second one would repeat it. */
  interface LogFnFields extends Partial<Record<'level' | 'time' | 'pid' | 'name' | 'msg', never>> {}
}

/**
 * Standard output is for results. Callers never pass request bodies or keys; redaction is a second safeguard.
 * @param level of pino, or `silent`
 */
export function createLogger(
  level: string,
  name: string,
  output: DestinationStream = pino.destination({ dest: 2, sync: false }),
): Logger {
  return pino(
    {
      name,
      level,
      base: { pid: process.pid, name },
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: describeError },
      redact: ['apiKey', 'password', '*.password', 'headers["x-api-key"]'],
    },
    output,
  );
}

/** Drops other fields: clients store sent data there. */
function describeError(error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error) };
  const { type, message, stack } = pino.stdSerializers.err(error);
  return 'code' in error ? { type, message, code: error.code, stack } : { type, message, stack };
}
