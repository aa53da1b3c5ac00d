export interface AnalystLimits {
  readonly seconds: number;
  readonly memoryBytes: number;
  /** 0: no limit. */
  readonly rows: number;
}

export const defaultAnalystLimits: AnalystLimits = { seconds: 60, memoryBytes: 2 ** 31, rows: 0 };
