/** What one token of a printed statement is; strings and numbers do not matter here. */
export interface Token {
  readonly text: string;
  readonly kind: 'name' | 'quoted' | 'string' | 'sign';
  /** Where it ends in the statement. */
  readonly end: number;
}

const tokenPattern =
  /'(?:[^'\\]|\\[\s\S]|'')*'|`(?:[^`\\]|\\[\s\S]|``)*`|"(?:[^"\\]|\\[\s\S]|"")*"|[A-Za-z_]\w*|\d[\w.]*|\S/g;

function tokenOf({ 0: text, index }: RegExpExecArray): Token {
  const first = text.charAt(0);
  const end = index + text.length;
  if (first === "'") return { text, kind: 'string', end };
  if (first === '`' || first === '"') return { text: text.slice(1, -1), kind: 'quoted', end };
  return { text, kind: /[A-Za-z_]/.test(first) ? 'name' : 'sign', end };
}

/** The tokens of a statement as the engine prints it: without comments. */
export const tokensOf = (statement: string): Token[] => [...statement.matchAll(tokenPattern)].map(tokenOf);

export const isName = ({ kind }: Token): boolean => kind === 'name' || kind === 'quoted';
