/** What an import keeps outside the process, and what it may rely on. */

/** What is remembered of the import of one content. */
export interface ImportRecord {
  /** Names the marks of the counted lines; another one for each time that the content is imported. */
  readonly id: string;
  /** How many times the content was begun anew. */
  readonly run: number;
  /** Everything up to this line is counted or rejected. */
  readonly line: number;
  /** Unix milliseconds. */
  readonly startedAt: number;
  readonly finishedAt: number | null;
}

/** @throws ApiError UNAVAILABLE from every call while Redis does not serve */
export interface ImportStore {
  find(content: string): Promise<ImportRecord | null>;
  put(content: string, record: ImportRecord): Promise<void>;
  savePosition(content: string, line: number): Promise<void>;
  /** Remembers the import as finished and forgets its marks. */
  finish(content: string, id: string, line: number, now: number): Promise<void>;
}
