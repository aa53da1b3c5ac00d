import { readableSystemTables } from './analyst-role.js';
import { BridgeError, notAllowed } from './errors.js';
import { checkHidden, withoutHidden } from './hidden-columns.js';
import { isName, type Token, tokensOf } from './tokens.js';

/*
 * readonly=1 and the role stop most, but in this engine (tried with 26.7) not: scalar file(), INTO OUTFILE, KILL,
 * SET ROLE, SETTINGS of a subquery, DESCRIBE of table functions, which tells the columns of any table, and sqlite(), which
 * makes its file before rights are looked at; nor does a role keep columns of `system`. So an analyst's statement is first
 * printed by the engine's own parser, then what is printed is checked here, and that text is run, with each `*` narrowed:
 * no comment, quoting or spelling can mean two things.
 */

const allowedVerbs: ReadonlySet<string> = new Set([
  'SELECT',
  'WITH',
  'SHOW',
  'DESCRIBE',
  'DESC',
  'EXISTS',
  'EXPLAIN',
  '(',
]);

/** Table functions that read nothing but what may be read, or nothing at all. */
const harmlessTableFunctions: ReadonlySet<string> = new Set([
  'format',
  'generate_series',
  'generaterandom',
  'generateseries',
  'merge',
  'null',
  'numbers',
  'numbers_mt',
  'primes',
  'values',
  'view',
  'viewifpermitted',
  'zeros',
  'zeros_mt',
]);

/**
 * Functions for which no right is needed and that read files, open connections or look into the process or its host;
 * refused even as a bare name (APPLY file).
 */
const forbiddenFunctions =
  /^(file|filesystem[a-z]*|catboostevaluate|ai[a-z]*|showcertificate|hostname|fqdn|fullhostname|getmacro|getserversetting|getserverport|tcpport|serveruuid|getoskernelversion)$/;

/** SHOW of anything else is about other people, queries or the server. */
const shown: ReadonlySet<string> = new Set(
  'CHANGED COLUMNS CREATE DATABASES ENGINES EXTENDED FIELDS FULL FUNCTIONS INDEX INDEXES INDICES KEYS SETTING SETTINGS TABLE TABLES VIEW'.split(
    ' ',
  ),
);

function denied(what: string): never {
  throw new BridgeError(164, 'READONLY', `${what}: Cannot execute query in readonly mode`);
}

function checkVerb(tokens: readonly Token[]): void {
  const verb = tokens[0]?.text.toUpperCase() ?? '';
  if (!allowedVerbs.has(verb) || tokens[0]?.kind === 'quoted') denied(verb);
  const what = tokens[1]?.text.toUpperCase() ?? '';
  if (verb === 'SHOW' && !shown.has(what)) notAllowed(what);
  // It tells the columns of tables that may not be read.
  const words = new Set(tokens.map(({ text }) => text));
  if (verb === 'EXPLAIN' && (words.has('TREE') || words.has('run_query_tree_passes')))
    notAllowed('QUERY TREE');
}

function checkSystem(token: Token, next: Token | undefined, afterNext: Token | undefined): void {
  if (!isName(token)) return;
  checkHidden(token.text);
  if (token.text !== 'system' || next?.text !== '.' || afterNext === undefined) return;
  if (!readableSystemTables.has(afterNext.text)) notAllowed(`system.${afterNext.text}`);
}

function checkKeyword(token: Token, next: Token | undefined, afterNext: Token | undefined): void {
  if (token.kind !== 'name') return;
  const word = token.text.toUpperCase();
  if (word === 'OUTFILE' || word === 'INFILE') denied(`INTO ${word}`);
  const assigns = next !== undefined && next.kind !== 'sign' && afterNext?.text === '=';
  if (word === 'SETTINGS' && assigns) denied('SETTINGS in the query (send them as URL parameters)');
}

function checkFunction(token: Token, next: Token | undefined, tableFunctions: ReadonlySet<string>): void {
  if (!isName(token)) return;
  const name = token.text.toLowerCase();
  if (forbiddenFunctions.test(name)) denied(`Function ${name}`);
  const called = next?.text === '(' && next.kind === 'sign';
  if (called && tableFunctions.has(name) && !harmlessTableFunctions.has(name)) {
    denied(`Table function ${name}`);
  }
}

/**
 * Refuses, with code 164 or 497, whatever an analyst may not run.
 * @param statement one statement as printed by the engine's formatQuery
 * @param tableFunctions names of all table functions of the engine, lower case
 * @returns what is to be run: no `*` of it means a hidden column
 */
export function checkAnalystStatement(statement: string, tableFunctions: ReadonlySet<string>): string {
  const tokens = tokensOf(statement);
  checkVerb(tokens);
  for (const [index, token] of tokens.entries()) {
    checkKeyword(token, tokens[index + 1], tokens[index + 2]);
    checkFunction(token, tokens[index + 1], tableFunctions);
    checkSystem(token, tokens[index + 1], tokens[index + 2]);
  }
  return withoutHidden(statement, tokens);
}
