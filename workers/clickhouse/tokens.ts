/** What one token of a printed statement is; strings and numbers do not matter here. */
export interface Token {
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

/** Tokens and the blanks between them, in order: together they are the statement. */
export const piecesOf = (statement: string): string[] => statement.match(tokenPattern) ?? [];

export const isBlank = (piece: string): boolean => piece.trim() === '';

/** The tokens of a statement as the engine prints it: without comments. */
export const tokensOf = (statement: string): Token[] =>
  piecesOf(statement)
    .filter((piece) => !isBlank(piece))
    .map(tokenOf);

export const isName = ({ kind }: Token): boolean => kind === 'name' || kind === 'quoted';
