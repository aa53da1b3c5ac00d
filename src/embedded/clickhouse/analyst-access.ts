import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BridgeError, rejectAccess } from './errors.js';
import { isName, type Token, tokenize } from './sql.js';

/*
 * A role of the session limits what analysts read (ADR 29). chdb has one user, which gets roles only by a
 * configuration file. Roles have no effect on `system`, so it has row policies.
 */

const parseWords = (list: string): ReadonlySet<string> => new Set(list.split(/\s+/));

export const setAnalystRole = 'SET ROLE analyst';

/** For tools and plain queries. They list only readable tables. */
const readableSystemTables = parseWords(
  `aggregate_function_combinators collations columns data_skipping_indices data_type_families databases
   formats functions keywords numbers numbers_mt one settings table_engines table_functions tables
   time_zones zeros zeros_mt`,
);

const escapeXml = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
const formatGrants = (...rights: readonly string[]): string =>
  `<grants>${rights.map((right) => `<query>GRANT ${escapeXml(right)}</query>`).join('')}</grants>`;
const formatPolicy = (table: string, filter: string): string =>
  `<table name="${table}"><filter>${filter}</filter></table>`;

/** Policies of a database and of its tables add up. */
function buildConfiguration(file: string, readable: readonly string[]): string {
  const all = formatPolicy('', "has(currentRoles(), 'service')");
  const tables = [...readableSystemTables].map((table) => formatPolicy(table, '1'));
  return `<clickhouse>
<display_name>skilltrace-embedded</display_name>
<users_config>${escapeXml(file)}</users_config>
<profiles><default/></profiles>
<quotas><default/></quotas>
<roles>
<service>${formatGrants('ALL ON *.*')}</service>
<analyst>${formatGrants(...readable.map((name) => `SELECT ON ${name}`))}</analyst>
</roles>
<users><default>
<password/><profile>default</profile><networks><ip>::/0</ip></networks>
${formatGrants('service, analyst')}
<databases><database name="system">${all}${tables.join('')}</database></databases>
</default></users>
</clickhouse>
`;
}

/**
 * Does not rewrite an unchanged file, so that a server can restart on a full disk.
 * @param readableTables as in GRANT @returns path of the file
 */
export async function writeAccessConfig(dataDir: string, readableTables: readonly string[]): Promise<string> {
  const file = join(dataDir, 'access.xml');
  const text = buildConfiguration(file, readableTables);
  const current = await readFile(file, 'utf8').catch(() => null);
  if (current !== text) await writeFile(file, text, { mode: 0o600 });
  return file;
}

/*
 * readonly=1 and the role allow (tried with 26.7): scalar file(), INTO OUTFILE, KILL, SET ROLE, SETTINGS of a
 * subquery, columns of `system`, DESCRIBE of table functions (columns of any table), and sqlite() (creates
 * its file). Therefore the engine's parser prints each statement. The printed text is unambiguous and is
 * checked here.
 */

const allowedVerbs = parseWords('SELECT WITH SHOW DESCRIBE DESC EXISTS EXPLAIN (');

const showableObjects = parseWords(
  'CHANGED COLUMNS CREATE DATABASES ENGINES EXTENDED FIELDS FULL FUNCTIONS INDEX INDEXES INDICES KEYS SETTING SETTINGS TABLE TABLES VIEW',
);

const harmlessTableFunctions = parseWords(
  'format generate_series generaterandom generateseries merge null numbers numbers_mt primes values view viewifpermitted zeros zeros_mt',
);

/** They read files, the process or its host without any right. Bare names are rejected too (APPLY file). */
const forbiddenFunctions =
  /^(file|filesystem[a-z]*|catboostevaluate|ai[a-z]*|showcertificate|hostname|fqdn|fullhostname|getmacro|getserversetting|getserverport|tcpport|serveruuid|getoskernelversion)$/;

/** File paths. Every account can read all columns of a `system` table. */
const hiddenColumns: readonly string[] = ['data_path', 'data_paths', 'metadata_path'];
const exceptHiddenColumns = ` EXCEPT (${hiddenColumns.join(', ')})`;

const expressionKeywords = parseWords(
  `ALL AND ANY AS BETWEEN BY CASE DISTINCT DIV ELSE EXISTS FILL FROM GLOBAL HAVING ILIKE IN INTERVAL JOIN LIKE LIMIT MOD NOT
   OFFSET ON OR PREWHERE QUALIFY REGEXP SAMPLE SELECT SET STEP THEN TO USING WHEN WHERE WITH`,
);

/**
 * @param statement printed by formatQuery @param tableFunctions lower-case names @returns the statement to
 * run
 * @throws BridgeError 164 or 497
 */
export function checkAnalystStatement(statement: string, tableFunctions: ReadonlySet<string>): string {
  const tokens = tokenize(statement);
  checkVerb(tokens);
  for (const [index, token] of tokens.entries()) {
    const [next, afterNext] = [tokens[index + 1], tokens[index + 2]];
    if (token.kind === 'name') checkKeyword(token.text.toUpperCase(), next, afterNext);
    if (isName(token)) checkName(token.text, next, afterNext, tableFunctions);
  }
  return excludeHiddenColumns(statement, tokens);
}

export function checkParameterValue(value: string): void {
  const hidden = hiddenColumns.find((column) => value.includes(column));
  if (hidden !== undefined) rejectAccess(hidden);
}

function rejectStatement(what: string): never {
  throw new BridgeError(164, 'READONLY', `${what}: Cannot execute query in readonly mode`);
}

function checkVerb(tokens: readonly Token[]): void {
  const verb = tokens[0]?.text.toUpperCase() ?? '';
  if (!allowedVerbs.has(verb) || tokens[0]?.kind === 'quoted') rejectStatement(verb);
  const what = tokens[1]?.text.toUpperCase() ?? '';
  if (verb === 'SHOW' && !showableObjects.has(what)) rejectAccess(what);
  // It shows the columns of all tables.
  if (verb === 'EXPLAIN' && tokens.some(({ text }) => text === 'TREE' || text === 'run_query_tree_passes'))
    rejectAccess('QUERY TREE');
}

function checkKeyword(word: string, next: Token | undefined, afterNext: Token | undefined): void {
  if (word === 'OUTFILE' || word === 'INFILE') rejectStatement(`INTO ${word}`);
  const assigns = next !== undefined && next.kind !== 'sign' && afterNext?.text === '=';
  if (word === 'SETTINGS' && assigns) rejectStatement('SETTINGS in the query (send them as URL parameters)');
}

function checkName(
  text: string,
  next: Token | undefined,
  afterNext: Token | undefined,
  tableFunctions: ReadonlySet<string>,
): void {
  const name = text.toLowerCase();
  if (forbiddenFunctions.test(name)) rejectStatement(`Function ${name}`);
  const isCalled = next?.text === '(' && next.kind === 'sign';
  if (isCalled && tableFunctions.has(name) && !harmlessTableFunctions.has(name))
    rejectStatement(`Table function ${name}`);
  if (hiddenColumns.includes(text)) rejectAccess(text);
  if (text !== 'system' || next?.text !== '.' || afterNext === undefined) return;
  if (!readableSystemTables.has(afterNext.text)) rejectAccess(`system.${afterNext.text}`);
}

function excludeHiddenColumns(statement: string, tokens: readonly Token[]): string {
  let result = '';
  let from = 0;
  for (const [index, { end }] of tokens.entries()) {
    if (!isColumnWildcard(tokens, index) && !endsColumnsPattern(tokens, index)) continue;
    result += statement.slice(from, end) + exceptHiddenColumns;
    from = end;
  }
  return result + statement.slice(from);
}

/** @returns true for a `*` that selects columns, not one that multiplies or counts rows */
function isColumnWildcard(tokens: readonly Token[], index: number): boolean {
  const [previous, token, next] = [tokens[index - 1], tokens[index], tokens[index + 1]];
  if (token?.kind !== 'sign' || token.text !== '*' || previous === undefined) return false;
  const isCount =
    tokens[index - 2]?.text.toLowerCase() === 'count' && previous.text === '(' && next?.text === ')';
  return !isCount && !endsOperand(previous);
}

function endsOperand({ text, kind }: Token): boolean {
  if (kind === 'sign') return /^(?:[)\]}]|\d.*)$/.test(text);
  return kind !== 'name' || !expressionKeywords.has(text);
}

function endsColumnsPattern(tokens: readonly Token[], index: number): boolean {
  const [word, open, pattern, close] = tokens.slice(Math.max(0, index - 3), index + 1);
  return word?.text === 'COLUMNS' && open?.text === '(' && pattern?.kind === 'string' && close?.text === ')';
}

/* Functions with long results or more than linear time. One row may take seconds, so blocks have few rows. */
const expensiveFunctions =
  /distance|similarity|^(?:repeat|range|space|(?:l|r|left|right)pad(?:utf8)?|arraywithconstant|arrayresize|random.*string.*|randomprintableascii|bcrypt|sleep.*)$/i;
const expensiveBlockRows = 4;

export function limitExpensiveBlocks(statement: string): string[] {
  const tokens = tokenize(statement);
  const called = tokens.filter((token, index) => isName(token) && tokens[index + 1]?.text === '(');
  if (!called.some(({ text }) => expensiveFunctions.test(text))) return [];
  return ['max_block_size', 'max_joined_block_size_rows'].map((name) => `${name} = ${expensiveBlockRows}`);
}
