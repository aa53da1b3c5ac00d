import { SkilltraceError } from './errors.js';
import { type CallOptions, jsonOf, type Received, type Request, type Transport } from './transport.js';
import type { PageQuery } from './types.js';

/** For a write that depends on what was read: the `etag` of it. Otherwise it rejects with PRECONDITION_FAILED. */
export interface WriteOptions extends CallOptions {
  readonly ifMatch?: string | undefined;
}

/** What was read or written, with its entity tag for `ifMatch`. */
export type Tagged<Data> = Data & { readonly etag: string };

/** Of all pages; `limit`: entries of each. */
export type AllQuery = Omit<PageQuery, 'cursor'> & CallOptions;

/** How operations are sent and their answers are read. */
export class Operations {
  constructor(protected readonly transport: Transport) {}

  /** @param query with the signal of the call */
  protected get<Data>(path: string, { signal, ...query }: CallOptions): Promise<Data> {
    return this.data({ method: 'GET', path, query }, { signal });
  }

  protected post<Data>(path: string, body: unknown, options: CallOptions): Promise<Data> {
    return this.data({ method: 'POST', path, body: JSON.stringify(body) }, options);
  }

  protected put<Data>(path: string, body: unknown, { signal, ifMatch }: WriteOptions): Promise<Tagged<Data>> {
    return this.tagged({ method: 'PUT', path, body: JSON.stringify(body), ifMatch }, { signal });
  }

  /** A write of which each repetition would make something more. */
  protected make<Data>(path: string, body: object | undefined, options: CallOptions): Promise<Data> {
    const content = body === undefined ? {} : { body: JSON.stringify(body) };
    return this.data({ method: 'POST', path, ...content, isIdempotent: false }, options);
  }

  protected remove<Data>(path: string, { signal, ifMatch }: WriteOptions): Promise<Data> {
    return this.data({ method: 'DELETE', path, ifMatch }, { signal });
  }

  protected async data<Data>(request: Request, options: CallOptions): Promise<Data> {
    return dataOf(await this.transport.call(request, options));
  }

  protected async tagged<Data>(request: Request, options: CallOptions): Promise<Tagged<Data>> {
    const received = await this.transport.call(request, options);
    return { ...dataOf<Data>(received), etag: received.headers.get('etag') ?? '' };
  }

  /** An answer without envelope that a probe gives, well or not. */
  protected async probe<Answer>(path: string, options: CallOptions): Promise<Answer> {
    return jsonOf(await this.transport.call({ method: 'GET', path, alsoFine: [503] }, options)) as Answer;
  }
}

interface Page {
  /** Null at the end. */
  readonly next_cursor: string | null;
}

/** What all pages have, page by page as it is asked for. */
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

/**
 * A path with ids in it.
 * @throws SkilltraceError INVALID_REQUEST for an id that would lead to another path: fetch removes `.` and `..`, escaped or not
 */
export const path = (parts: TemplateStringsArray, ...ids: readonly string[]): string =>
  String.raw({ raw: parts }, ...ids.map(escaped));

function escaped(id: string): string {
  if (!['', '.', '..'].includes(id)) return encodeURIComponent(id);
  throw new SkilltraceError('INVALID_REQUEST', `The id ${JSON.stringify(id)} cannot be part of a path`);
}
