import { notAllowed } from './errors.js';
import type { Token } from './tokens.js';

/*
 * Columns of tables of `system` that tell where files are. The engine lets everybody read all columns of such a table, so
 * they are refused by name, and left out of what stands for all columns.
 */
const hiddenColumns: readonly string[] = ['data_path', 'data_paths', 'metadata_path'];

/** @throws BridgeError with code 497 for the name of such a column */
export function checkHidden(name: string): void {
  if (hiddenColumns.includes(name)) notAllowed(name);
}

/** A parameter may stand for a name that is printed as its placeholder. */
export function checkParameterValue(value: string): void {
  const hidden = hiddenColumns.find((column) => value.includes(column));
  if (hidden !== undefined) notAllowed(hidden);
}

const narrowed = ` EXCEPT (${hiddenColumns.join(', ')})`;

/** The engine's words, printed in capitals, behind which an expression begins. */
const beforeExpressions: ReadonlySet<string> = new Set(
  'ALL AND ANY AS BETWEEN BY CASE DISTINCT DIV ELSE EXISTS FILL FROM GLOBAL HAVING ILIKE IN INTERVAL JOIN LIKE LIMIT MOD NOT OFFSET ON OR PREWHERE QUALIFY REGEXP SAMPLE SELECT SET STEP THEN TO USING WHEN WHERE WITH'.split(
    ' ',
  ),
);

/** Behind the end of an operand a printed `*` multiplies. */
function endsOperand({ text, kind }: Token): boolean {
  if (kind === 'sign') return /^(?:[)\]}]|\d.*)$/.test(text);
  return kind !== 'name' || !beforeExpressions.has(text);
}

function isPlainCount(tokens: readonly Token[], index: number): boolean {
  const [name, open, , close] = tokens.slice(index - 2, index + 2);
  return index > 1 && name?.text.toLowerCase() === 'count' && open?.text === '(' && close?.text === ')';
}

function meansColumns(tokens: readonly Token[], index: number): boolean {
  const [previous, token] = [tokens[index - 1], tokens[index]];
  if (token?.kind !== 'sign' || token.text !== '*' || previous === undefined) return false;
  return !endsOperand(previous) && !isPlainCount(tokens, index);
}

/** The end of `COLUMNS('pattern')`. */
function endsPattern(tokens: readonly Token[], index: number): boolean {
  const [word, open, pattern, close] = tokens.slice(Math.max(0, index - 3), index + 1);
  return word?.text === 'COLUMNS' && open?.text === '(' && pattern?.kind === 'string' && close?.text === ')';
}

/** The statement with each `*` and `COLUMNS` narrowed, which is harmless where a table has no such column. */
export function withoutHidden(statement: string, tokens: readonly Token[]): string {
  let done = '';
  let from = 0;
  for (const [index, { end }] of tokens.entries()) {
    if (!meansColumns(tokens, index) && !endsPattern(tokens, index)) continue;
    done += statement.slice(from, end) + narrowed;
    from = end;
  }
  return done + statement.slice(from);
}
