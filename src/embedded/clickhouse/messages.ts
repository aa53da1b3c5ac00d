import type { RawInsertFormat } from 'chdb';

/** What a request asks of the engine; made by the HTTP side, carried to an engine thread. */
export interface EngineJob {
  /** Unique in this process; also the query's log_comment, so that a KILL QUERY finds it. */
  readonly id: string;
  readonly database: string;
  /** `name = literal` pairs for SET, already escaped: settings and `param_` values. */
  readonly assignments: readonly string[];
  /** 0 for the writing account, 2 for its GET requests, 1 for an analyst. */
  readonly readonly: 0 | 1 | 2;
  readonly statement: string;
  /** How long it may run, in milliseconds; null: as long as it takes. */
  readonly limitMs: number | null;
  readonly format: string;
  /** The answer is rows without head or tail: it may go out block by block. */
  readonly streamed: boolean;
  readonly insert: RowInsert | null;
}

/** Rows that go to the engine as one block of bytes: one insert, one deduplication token. */
export interface RowInsert {
  readonly table: string;
  readonly columns: readonly string[] | null;
  readonly format: RawInsertFormat;
  readonly rows: Uint8Array;
}

export interface WriteSummary {
  readonly writtenRows: number;
  readonly writtenBytes: number;
}

/** `next` asks for the following chunk: the thread never runs ahead of the socket. */
export type ToThread =
  | { readonly type: 'run'; readonly job: EngineJob }
  | { readonly type: 'next' }
  | { readonly type: 'cancel' };

/** `loaded` comes first, once. */
export type FromThread =
  | { readonly type: 'loaded' }
  | { readonly type: 'chunk'; readonly bytes: Uint8Array }
  | { readonly type: 'done'; readonly summary: WriteSummary | null }
  | { readonly type: 'failed'; readonly message: string };
