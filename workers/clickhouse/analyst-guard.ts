import { BridgeError } from './errors.js';

/*
 * readonly=1 stops writes and most table functions, but in this engine (tried with 26.7) not: scalar
 * file(), DESCRIBE of a table function, INTO OUTFILE, KILL, UNDROP, SETTINGS of a subquery. So an
 * analyst's statement is first printed by the engine's own parser, then what is printed is checked
 * here, and exactly that text is run: no comment, quoting or spelling can mean two things.
 */

/** What one token of a printed statement is; strings and numbers do not matter here. */
interface Token {
  readonly text: string;
  readonly kind: 'name' | 'quoted' | 'string' | 'sign';
}

const tokenPattern =
  /'(?:[^'\\]|\\[\s\S]|'')*'|`(?:[^`\\]|\\[\s\S]|``)*`|"(?:[^"\\]|\\[\s\S]|"")*"|[A-Za-z_]\w*|\d[\w.]*|\s+|[\s\S]/g;

function tokenOf(text: string): Token {
  const first = text.charAt(0);
  if (first === "'") return { text, kind: 'string' };
  if (first === '`' || first === '"') return { text: text.slice(1, -1), kind: 'quoted' };
  return { text, kind: /[A-Za-z_]/.test(first) ? 'name' : 'sign' };
}

function tokensOf(statement: string): Token[] {
  return (statement.match(tokenPattern) ?? []).filter((text) => text.trim() !== '').map(tokenOf);
}

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

/** Table functions that read nothing but the database itself, or nothing at all. */
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

/** Functions that read files, open connections or look into the process; refused even as a bare name (APPLY file). */
const forbiddenFunctions =
  /^(file|catboostevaluate|hascolumnintable|addresstoline.*|addresstosymbol|demangle|ai[a-z]*|showcertificate|executable.*|python.*|(from|to)modelevaluate)$/;

function denied(what: string): never {
  throw new BridgeError(164, 'READONLY', `${what}: Cannot execute query in readonly mode`);
}

function checkVerb(tokens: readonly Token[]): void {
  const verb = tokens[0]?.text.toUpperCase() ?? '';
  if (!allowedVerbs.has(verb) || tokens[0]?.kind === 'quoted') denied(verb);
}

function checkKeyword(token: Token, next: Token | undefined, afterNext: Token | undefined): void {
  if (token.kind !== 'name') return;
  const word = token.text.toUpperCase();
  if (word === 'OUTFILE' || word === 'INFILE') denied(`INTO ${word}`);
  const assigns = next !== undefined && next.kind !== 'sign' && afterNext?.text === '=';
  if (word === 'SETTINGS' && assigns) denied('SETTINGS in the query (send them as URL parameters)');
}

function checkFunction(token: Token, next: Token | undefined, tableFunctions: ReadonlySet<string>): void {
  if (token.kind !== 'name' && token.kind !== 'quoted') return;
  const name = token.text.toLowerCase();
  if (forbiddenFunctions.test(name)) denied(`Function ${name}`);
  const called = next?.text === '(' && next.kind === 'sign';
  if (called && tableFunctions.has(name) && !harmlessTableFunctions.has(name)) {
    denied(`Table function ${name}`);
  }
}

/*
 * The engine's own `default` database shows the files of the working folder as tables: reading them is
 * refused by readonly=1, asking whether they exist is not.
 */
function checkDefaultDatabase(token: Token, next: Token | undefined): void {
  const isName = token.kind === 'name' || token.kind === 'quoted';
  if (isName && token.text === 'default' && next?.text === '.') denied('Database default');
}

function checkSubstitutedNames(tokens: readonly Token[]): void {
  const asksForNames = ['EXISTS', 'SHOW'].includes(tokens[0]?.text.toUpperCase() ?? '');
  if (asksForNames && tokens.some((token) => token.text === 'Identifier')) denied('Identifier parameter');
}

/**
 * Refuses, with code 164, whatever an analyst may not run.
 * @param statement one statement as printed by the engine's formatQuery
 * @param tableFunctions names of all table functions of the engine, lower case
 */
export function checkAnalystStatement(statement: string, tableFunctions: ReadonlySet<string>): void {
  const tokens = tokensOf(statement);
  checkVerb(tokens);
  checkSubstitutedNames(tokens);
  for (const [index, token] of tokens.entries()) {
    checkKeyword(token, tokens[index + 1], tokens[index + 2]);
    checkFunction(token, tokens[index + 1], tableFunctions);
    checkDefaultDatabase(token, tokens[index + 1]);
  }
}
