export interface AnalystLimits {
  /** Until the last result row is sent. */
  readonly seconds: number;
  readonly memoryBytes: number;
  /** Read in all tables; 0: no limit. */
  readonly rows: number;
}

export const defaultAnalystLimits: AnalystLimits = { seconds: 60, memoryBytes: 2 ** 31, rows: 0 };
