import { SkilltraceError } from './errors.js';
import { type CallOptions, jsonOf, type Received, type Request, type Transport } from './transport.js';
import type { PageQuery } from './types.js';

/** The write rejects with PRECONDITION_FAILED if the entry has another `etag`. */
export interface WriteOptions extends CallOptions {
  readonly ifMatch?: string | undefined;
}

export type Tagged<Data> = Data & { readonly etag: string };

/** For all pages; `limit` is the page size. */
export type AllQuery = Omit<PageQuery, 'cursor'> & CallOptions;

type Send = Pick<Request, 'method' | 'isIdempotent'> & { readonly hasBody?: boolean };

/** The first arguments of a call replace each `{}` of the template below /api/v1; body and options follow. */
export class Operations {
  constructor(protected readonly transport: Transport) {}

  protected get<Args extends unknown[], Data, Query = unknown>(template: string) {
    return async (...args: [...Args, query?: Query & CallOptions]): Promise<Data> =>
      dataOf(await this.#send(template, args, { method: 'GET' }));
  }

  protected getTagged<Args extends unknown[], Data>(template: string) {
    return async (...args: [...Args, options?: CallOptions]): Promise<Tagged<Data>> =>
      taggedOf(await this.#send(template, args, { method: 'GET' }));
  }

  protected put<Args extends unknown[], Data>(template: string) {
    return async (...args: [...Args, options?: WriteOptions]): Promise<Tagged<Data>> =>
      taggedOf(await this.#send(template, args, { method: 'PUT', hasBody: true }));
  }

  protected post<Args extends unknown[], Data>(template: string, send: Pick<Send, 'isIdempotent'> = {}) {
    return async (...args: [...Args, options?: CallOptions]): Promise<Data> =>
      dataOf(await this.#send(template, args, { method: 'POST', hasBody: true, ...send }));
  }

  /** POST without a body. */
  protected trigger<Args extends unknown[], Data>(template: string, send: Pick<Send, 'isIdempotent'> = {}) {
    return async (...args: [...Args, options?: CallOptions]): Promise<Data> =>
      dataOf(await this.#send(template, args, { method: 'POST', ...send }));
  }

  protected patch<Args extends unknown[], Data>(template: string) {
    return async (...args: [...Args, options?: CallOptions]): Promise<Data> =>
      dataOf(await this.#send(template, args, { method: 'PATCH', hasBody: true }));
  }

  protected remove<Args extends unknown[], Data, Options = CallOptions>(template: string) {
    return async (...args: [...Args, options?: Options]): Promise<Data> =>
      dataOf(await this.#send(template, args, { method: 'DELETE' }));
  }

  /** Result without envelope; accepts status 503. */
  protected probe<Data>(path: string) {
    return async (options?: CallOptions): Promise<Data> =>
      jsonOf(await this.transport.call({ method: 'GET', path, alsoFine: [503] }, options)) as Data;
  }

  async #send(template: string, args: readonly unknown[], { hasBody, ...send }: Send): Promise<Received> {
    const pieces = `/api/v1${template}`.split('{}');
    const [ids, others] = [args.slice(0, pieces.length - 1), args.slice(pieces.length - 1)];
    const path = String.raw({ raw: pieces }, ...ids.map((id) => escaped(id as string)));
    const body = hasBody ? { body: JSON.stringify(others.shift() ?? {}) } : {};
    const { signal, ifMatch, ...query } = (others[0] ?? {}) as WriteOptions;
    return this.transport.call({ ...send, ...body, path, query, ifMatch }, { signal });
  }
}

interface Page {
  /** Null: last page. */
  readonly next_cursor: string | null;
}

/** Fetches pages when the loop reaches them. */
export async function* entriesOf<Of extends Page, Entry>(
  pageAt: (cursor: string | undefined) => Promise<Of>,
  entriesIn: (page: Of) => readonly Entry[],
): AsyncGenerator<Entry, void, undefined> {
  for (let cursor: string | undefined; ; ) {
    const page = await pageAt(cursor);
    yield* entriesIn(page);
    if (page.next_cursor === null) return;
    cursor = page.next_cursor;
  }
}

const dataOf = <Data>(received: Received): Data => (jsonOf(received) as { readonly data: Data }).data;

const taggedOf = <Data>(received: Received): Tagged<Data> => ({
  ...dataOf<Data>(received),
  etag: received.headers.get('etag') ?? '',
});

/**
 * fetch removes `.` and `..`, escaped or not: the path would change.
 * @throws SkilltraceError INVALID_REQUEST
 */
export function escaped(id: string): string {
  if (!['', '.', '..'].includes(id)) return encodeURIComponent(id);
  throw new SkilltraceError('INVALID_REQUEST', `The id ${JSON.stringify(id)} cannot be part of a path`);
}
