import { startApp } from './app/app.js';
import type { StartedApp } from './app/start-role.js';
import { type Config, describeSettings, loadConfig } from './config.js';
import { reportStartFailure, runProcess, StartError } from './lifecycle.js';
import { createLogger } from './logger.js';

export async function main(argv: readonly string[]): Promise<void> {
  if (argv.includes('--help') || argv.includes('-h')) {
    process.stdout.write(
      `Usage: npm start\n\nStarts Skilltrace, with embedded Redis and ClickHouse unless REDIS_URL and CLICKHOUSE_URL are set.\n\n${describeSettings()}\nExample:\n  PORT=8080 LOG_LEVEL=warn npm start\n`,
    );
    return;
  }
  const config = loadConfigOrExit(argv);
  if (config === null) return;
  const logger = createLogger(config.logLevel, config.role);
  await runProcess(logger, async (closers) => {
    const started = await startApp(config, logger, closers);
    process.stdout.write(`${formatGreeting(config, started)}\n`);
  });
}

function loadConfigOrExit([argument]: readonly string[]): Config | null {
  try {
    if (argument !== undefined)
      throw new StartError(
        `Unexpected argument ${argument}: npm start reads environment variables. --help lists them`,
      );
    return loadConfig();
  } catch (error) {
    reportStartFailure(error, createLogger('info', 'start'));
    process.exitCode = 1;
    return null;
  }
}

function formatGreeting({ host, role }: Config, { port, keyMessage, dashboardUrl }: StartedApp): string {
  if (port === null) return `Skilltrace ${role} is running`;
  const address = `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
  const listens = `Skilltrace listens on ${address}${keyMessage === null ? '' : ` (${keyMessage})`}`;
  return dashboardUrl === null ? listens : `${listens}\nDashboard: ${dashboardUrl}`;
}
