import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BridgeError, notAllowed } from './errors.js';
import { isName, type Token, tokensOf } from './sql.js';

/*
 * A role of the session limits what analysts read (ADR 29). chdb has one user, which gets roles only by a
 * configuration file. Roles have no effect on `system`, so it has row policies.
 */

const words = (list: string): ReadonlySet<string> => new Set(list.split(/\s+/));

export const takeAnalystRole = 'SET ROLE analyst';

/** For tools and plain queries. They list only readable tables. */
const readableSystemTables = words(
  `aggregate_function_combinators collations columns data_skipping_indices data_type_families databases
   formats functions keywords numbers numbers_mt one settings table_engines table_functions tables
   time_zones zeros zeros_mt`,
);

const xmlText = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
const grants = (...rights: readonly string[]): string =>
  `<grants>${rights.map((right) => `<query>GRANT ${xmlText(right)}</query>`).join('')}</grants>`;
const policy = (table: string, filter: string): string =>
  `<table name="${table}"><filter>${filter}</filter></table>`;

/** Policies of a database and of its tables add up. */
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
 * Writes only changes, so that a dead server can restart on a full disk. @param readableTables as in GRANT
 */
export async function writeAccess(dataDir: string, readable: readonly string[]): Promise<string> {
  const file = join(dataDir, 'access.xml');
  const text = configuration(file, readable);
  const there = await readFile(file, 'utf8').catch(() => null);
  if (there !== text) await writeFile(file, text, { mode: 0o600 });
  return file;
}

/*
 * readonly=1 and the role allow (tried with 26.7): scalar file(), INTO OUTFILE, KILL, SET ROLE, SETTINGS of a
 * subquery, columns of `system`, DESCRIBE of table functions (columns of any table), and sqlite() (creates
 * its file). Therefore the engine's parser prints each statement. The printed text is unambiguous and is
 * checked here.
 */

const allowedVerbs = words('SELECT WITH SHOW DESCRIBE DESC EXISTS EXPLAIN (');

const shown = words(
  'CHANGED COLUMNS CREATE DATABASES ENGINES EXTENDED FIELDS FULL FUNCTIONS INDEX INDEXES INDICES KEYS SETTING SETTINGS TABLE TABLES VIEW',
);

const harmlessTableFunctions = words(
  'format generate_series generaterandom generateseries merge null numbers numbers_mt primes values view viewifpermitted zeros zeros_mt',
);

/** They read files, the process or its host without any right. Bare names are rejected too (APPLY file). */
const forbiddenFunctions =
  /^(file|filesystem[a-z]*|catboostevaluate|ai[a-z]*|showcertificate|hostname|fqdn|fullhostname|getmacro|getserversetting|getserverport|tcpport|serveruuid|getoskernelversion)$/;

/** File paths. Every account can read all columns of a `system` table. */
const hiddenColumns: readonly string[] = ['data_path', 'data_paths', 'metadata_path'];
const narrowed = ` EXCEPT (${hiddenColumns.join(', ')})`;

const beforeExpressions = words(
  `ALL AND ANY AS BETWEEN BY CASE DISTINCT DIV ELSE EXISTS FILL FROM GLOBAL HAVING ILIKE IN INTERVAL JOIN LIKE LIMIT MOD NOT
   OFFSET ON OR PREWHERE QUALIFY REGEXP SAMPLE SELECT SET STEP THEN TO USING WHEN WHERE WITH`,
);

/**
 * @param statement printed by formatQuery @param tableFunctions lower-case names @returns the statement to
 * run
 * @throws BridgeError 164 or 497
 */
export function checkAnalystStatement(statement: string, tableFunctions: ReadonlySet<string>): string {
  const tokens = tokensOf(statement);
  checkVerb(tokens);
  for (const [index, token] of tokens.entries()) {
    const [next, afterNext] = [tokens[index + 1], tokens[index + 2]];
    if (token.kind === 'name') checkKeyword(token.text.toUpperCase(), next, afterNext);
    if (isName(token)) checkName(token.text, next, afterNext, tableFunctions);
  }
  return withoutHidden(statement, tokens);
}

export function checkParameterValue(value: string): void {
  const hidden = hiddenColumns.find((column) => value.includes(column));
  if (hidden !== undefined) notAllowed(hidden);
}

function denied(what: string): never {
  throw new BridgeError(164, 'READONLY', `${what}: Cannot execute query in readonly mode`);
}

function checkVerb(tokens: readonly Token[]): void {
  const verb = tokens[0]?.text.toUpperCase() ?? '';
  if (!allowedVerbs.has(verb) || tokens[0]?.kind === 'quoted') denied(verb);
  const what = tokens[1]?.text.toUpperCase() ?? '';
  if (verb === 'SHOW' && !shown.has(what)) notAllowed(what);
  // It shows the columns of all tables.
  if (verb === 'EXPLAIN' && tokens.some(({ text }) => text === 'TREE' || text === 'run_query_tree_passes'))
    notAllowed('QUERY TREE');
}

function checkKeyword(word: string, next: Token | undefined, afterNext: Token | undefined): void {
  if (word === 'OUTFILE' || word === 'INFILE') denied(`INTO ${word}`);
  const assigns = next !== undefined && next.kind !== 'sign' && afterNext?.text === '=';
  if (word === 'SETTINGS' && assigns) denied('SETTINGS in the query (send them as URL parameters)');
}

function checkName(
  text: string,
  next: Token | undefined,
  afterNext: Token | undefined,
  tableFunctions: ReadonlySet<string>,
): void {
  const name = text.toLowerCase();
  if (forbiddenFunctions.test(name)) denied(`Function ${name}`);
  const isCalled = next?.text === '(' && next.kind === 'sign';
  if (isCalled && tableFunctions.has(name) && !harmlessTableFunctions.has(name))
    denied(`Table function ${name}`);
  if (hiddenColumns.includes(text)) notAllowed(text);
  if (text !== 'system' || next?.text !== '.' || afterNext === undefined) return;
  if (!readableSystemTables.has(afterNext.text)) notAllowed(`system.${afterNext.text}`);
}

function withoutHidden(statement: string, tokens: readonly Token[]): string {
  let done = '';
  let from = 0;
  for (const [index, { end }] of tokens.entries()) {
    if (!meansColumns(tokens, index) && !endsPattern(tokens, index)) continue;
    done += statement.slice(from, end) + narrowed;
    from = end;
  }
  return done + statement.slice(from);
}

/** The `*` does not multiply or count. */
function meansColumns(tokens: readonly Token[], index: number): boolean {
  const [previous, token, next] = [tokens[index - 1], tokens[index], tokens[index + 1]];
  if (token?.kind !== 'sign' || token.text !== '*' || previous === undefined) return false;
  const isCount =
    tokens[index - 2]?.text.toLowerCase() === 'count' && previous.text === '(' && next?.text === ')';
  return !isCount && !endsOperand(previous);
}

function endsOperand({ text, kind }: Token): boolean {
  if (kind === 'sign') return /^(?:[)\]}]|\d.*)$/.test(text);
  return kind !== 'name' || !beforeExpressions.has(text);
}

function endsPattern(tokens: readonly Token[], index: number): boolean {
  const [word, open, pattern, close] = tokens.slice(Math.max(0, index - 3), index + 1);
  return word?.text === 'COLUMNS' && open?.text === '(' && pattern?.kind === 'string' && close?.text === ')';
}

/* Functions with long results or more than linear time, of seconds per row. */
const dearFunctions =
  /distance|similarity|^(?:repeat|range|space|(?:l|r|left|right)pad(?:utf8)?|arraywithconstant|arrayresize|random.*string.*|randomprintableascii|bcrypt|sleep.*)$/i;
const dearBlockRows = 4;

export function dearAssignments(statement: string): string[] {
  const tokens = tokensOf(statement);
  const called = tokens.filter((token, index) => isName(token) && tokens[index + 1]?.text === '(');
  if (!called.some(({ text }) => dearFunctions.test(text))) return [];
  return ['max_block_size', 'max_joined_block_size_rows'].map((name) => `${name} = ${dearBlockRows}`);
}
