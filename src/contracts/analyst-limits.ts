/** What one query of an analyst may take of the embedded ClickHouse. */
export interface AnalystLimits {
  /** From its start to the last row of its answer. */
  readonly seconds: number;
  readonly memoryBytes: number;
  /** Rows that it reads, in all tables together; 0: as many as it likes. */
  readonly rows: number;
}

export const defaultAnalystLimits: AnalystLimits = { seconds: 60, memoryBytes: 2 ** 31, rows: 0 };
