/** Starts a process, the servers first, which come up while the rest of the program is loaded. */
import type { Config } from '../config.js';
import { warnOfReaders } from '../embedded/data-dir.js';
import { type ClickhouseEnds, resolveEndpoints, startEmbedded } from '../embedded/servers.js';
import type { Closers } from '../lifecycle.js';
import type { Logger } from '../telemetry.js';
import { checkOpenFiles } from './open-files.js';

export interface Started {
  /** Null for a process that listens nowhere. */
  readonly port: number | null;
  /** What the user is to know of API keys, or null. */
  readonly keyNote: string | null;
  /** A link to the dashboard that brings the development key along, or null. */
  readonly dashboard: string | null;
}

/** Starts everything that the role asks for. @throws StartError for what the user can mend */
export async function startApp(config: Config, logger: Logger, closers: Closers): Promise<Started> {
  checkOpenFiles(logger);
  const { role, skillsFile } = config;
  const isWanted = role !== 'pipeline' && skillsFile !== null;
  const skills = isWanted ? (await import('./skills-file.js')).readSkillsFile(skillsFile) : null;
  const clickhouseEnds: ClickhouseEnds = { died: 0, analyst_query: 0 };
  const [endpoints, { startRole }] = await Promise.all([
    role === 'all' ? startEmbedded(config, logger, closers, clickhouseEnds) : resolveEndpoints(config),
    import('./roles.js'),
  ]);
  warnOfReaders(config.dataDir, logger);
  return startRole(config, endpoints, skills, clickhouseEnds, logger, closers);
}
