/** Why a row is invalid. */
export class RowProblem extends Error {
  /** Without the value, to count rows by reason. */
  readonly reason: string;

  constructor(column: string, problem: string, value?: unknown) {
    super(value === undefined ? `${column} ${problem}` : `${column} ${formatValue(value)} ${problem}`);
    this.reason = `${column} ${problem}`;
  }
}

export const isAbsent = (value: unknown): boolean => value === undefined || value === null || value === '';

/** Null if absent. @param bounds inclusive @throws RowProblem */
export function parseNumberField(
  name: string,
  value: unknown,
  bounds?: readonly [low: number, high: number],
): number | null {
  if (isAbsent(value)) return null;
  const [low, high] = bounds ?? [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
  const number = parseNumber(value);
  // Turns -0 into 0: ClickHouse would store the sign.
  if (number !== null && number >= low && number <= high) return number + 0;
  const range = bounds ? ` from ${low} to ${high}` : '';
  throw new RowProblem(name, `must be a number${range}`, value);
}

/** Undefined if invalid. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

const decimalPattern = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?$/i;

export function parseNumber(value: unknown): number | null {
  const text = typeof value === 'number' ? `${value}` : typeof value === 'string' ? value.trim() : '';
  const number = decimalPattern.test(text) ? Number(text) : Number.NaN;
  return Number.isFinite(number) ? number : null;
}

const maxValueCharacters = 60;

/** Shortened JSON, which escapes terminal codes. */
export function formatValue(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length <= maxValueCharacters ? text : `${text.slice(0, maxValueCharacters)}...`;
}
