import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/*
 * What analysts may read is kept by the engine itself, by a role that their sessions take. chdb has one user with every
 * right and lets nobody make others, unless a configuration brings them (tried with 26.7). Roles cannot keep anybody from
 * `system`, which all may read: row policies do, and they also hold where a name is made up or matched by a pattern.
 */

/** Takes every other role, and so every other right, from a session. */
export const takeAnalystRole = 'SET ROLE analyst';

/** Tables of `system` that tools look into, and what plain questions are made of; each shows one's own tables only. */
export const readableSystemTables: ReadonlySet<string> = new Set(
  `aggregate_function_combinators collations columns data_skipping_indices data_type_families databases
   formats functions keywords numbers numbers_mt one settings table_engines table_functions tables
   time_zones zeros zeros_mt`.split(/\s+/),
);

const xmlText = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
const grants = (...rights: readonly string[]): string =>
  `<grants>${rights.map((right) => `<query>GRANT ${xmlText(right)}</query>`).join('')}</grants>`;
const policy = (table: string, filter: string): string =>
  `<table name="${table}"><filter>${filter}</filter></table>`;

/** The policy of a whole database and those of its tables add up. */
function configuration(file: string, readable: readonly string[]): string {
  const all = policy('', "has(currentRoles(), 'service')");
  const tables = [...readableSystemTables].map((table) => policy(table, '1'));
  return `<clickhouse>
<display_name>skilltrace-embedded</display_name>
<users_config>${xmlText(file)}</users_config>
<profiles><default/></profiles>
<quotas><default/></quotas>
<roles>
<service>${grants('ALL ON *.*')}</service>
<analyst>${grants(...readable.map((name) => `SELECT ON ${name}`))}</analyst>
</roles>
<users><default>
<password/><profile>default</profile><networks><ip>::/0</ip></networks>
${grants('service, analyst')}
<databases><database name="system">${all}${tables.join('')}</database></databases>
</default></users>
</clickhouse>
`;
}

/**
 * Writes the engine's configuration where it is not there yet: on a full disk a server that died starts again all the same.
 *
 * @param readable tables that analysts may read, as GRANT has them
 * @returns its path
 */
export async function writeAccess(dataDir: string, readable: readonly string[]): Promise<string> {
  const file = join(dataDir, 'access.xml');
  const text = configuration(file, readable);
  const there = await readFile(file, 'utf8').catch(() => null);
  if (there !== text) await writeFile(file, text, { mode: 0o600 });
  return file;
}
