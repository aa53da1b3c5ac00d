/** The embedded servers start while the other modules load. */
import type { Config } from '../config.js';
import { warnIfReadable } from '../embedded/data-dir.js';
import { type ClickhouseExitCounts, resolveEndpoints, startEmbeddedServers } from '../embedded/servers.js';
import type { Closers } from '../lifecycle.js';
import type { Logger } from '../logger.js';
import type { StartedApp } from './start-role.js';
import { checkOpenFiles } from './startup/open-files.js';

/** @throws StartError for errors that the user can fix */
export async function startApp(config: Config, logger: Logger, closers: Closers): Promise<StartedApp> {
  checkOpenFiles(logger);
  const { role, skillsFile } = config;
  const loadsSkills = role !== 'pipeline' && skillsFile !== null;
  const skills = loadsSkills ? (await import('./startup/skills-file.js')).readSkillsFile(skillsFile) : null;
  const clickhouseExits: ClickhouseExitCounts = { died: 0, analyst_query: 0 };
  const [endpoints, { startRole }] = await Promise.all([
    role === 'all'
      ? startEmbeddedServers(config, logger, closers, clickhouseExits)
      : resolveEndpoints(config),
    import('./start-role.js'),
  ]);
  warnIfReadable(config.dataDir, logger);
  return startRole(config, endpoints, skills, clickhouseExits, logger, closers);
}
