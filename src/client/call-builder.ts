import { SkilltraceError } from './errors.js';
import {
  type ApiRequest,
  type CallOptions,
  parseResponse,
  type TextResponse,
  type Transport,
} from './transport.js';
import type { PageQuery } from './types.js';

/** The write rejects with PRECONDITION_FAILED if the entry has another `etag`. */
export interface WriteOptions extends CallOptions {
  readonly ifMatch?: string | undefined;
}

export type TaggedData<Data> = Data & { readonly etag: string };

/** For all pages; `limit` is the page size. */
export type ListingQuery = Omit<PageQuery, 'cursor'> & CallOptions;

type SendOptions = Pick<ApiRequest, 'method' | 'isIdempotent'> & { readonly hasBody?: boolean };

/** The first arguments of a call replace each `{}` of the template below /api/v1; body and options follow. */
export class CallBuilder {
  constructor(protected readonly transport: Transport) {}

  protected get<Args extends unknown[], Data, Query = unknown>(template: string) {
    return async (...args: [...Args, query?: Query & CallOptions]): Promise<Data> =>
      readData(await this.#send(template, args, { method: 'GET' }));
  }

  protected getWithEtag<Args extends unknown[], Data>(template: string) {
    return async (...args: [...Args, options?: CallOptions]): Promise<TaggedData<Data>> =>
      readTaggedData(await this.#send(template, args, { method: 'GET' }));
  }

  protected put<Args extends unknown[], Data>(template: string) {
    return async (...args: [...Args, options?: WriteOptions]): Promise<TaggedData<Data>> =>
      readTaggedData(await this.#send(template, args, { method: 'PUT', hasBody: true }));
  }

  protected post<Args extends unknown[], Data>(
    template: string,
    send: Pick<SendOptions, 'isIdempotent'> = {},
  ) {
    return async (...args: [...Args, options?: CallOptions]): Promise<Data> =>
      readData(await this.#send(template, args, { method: 'POST', hasBody: true, ...send }));
  }

  /** POST without a body. */
  protected trigger<Args extends unknown[], Data>(
    template: string,
    send: Pick<SendOptions, 'isIdempotent'> = {},
  ) {
    return async (...args: [...Args, options?: CallOptions]): Promise<Data> =>
      readData(await this.#send(template, args, { method: 'POST', ...send }));
  }

  protected patch<Args extends unknown[], Data>(template: string) {
    return async (...args: [...Args, options?: CallOptions]): Promise<Data> =>
      readData(await this.#send(template, args, { method: 'PATCH', hasBody: true }));
  }

  protected remove<Args extends unknown[], Data, Options = CallOptions>(template: string) {
    return async (...args: [...Args, options?: Options]): Promise<Data> =>
      readData(await this.#send(template, args, { method: 'DELETE' }));
  }

  /** Result without envelope; accepts status 503. */
  protected probe<Data>(path: string) {
    return async (options?: CallOptions): Promise<Data> =>
      parseResponse(
        await this.transport.call({ method: 'GET', path, acceptedStatuses: [503] }, options),
      ) as Data;
  }

  async #send(
    template: string,
    args: readonly unknown[],
    { hasBody, ...send }: SendOptions,
  ): Promise<TextResponse> {
    const pieces = `/api/v1${template}`.split('{}');
    const [ids, others] = [args.slice(0, pieces.length - 1), args.slice(pieces.length - 1)];
    const path = String.raw({ raw: pieces }, ...ids.map((id) => escapeId(id as string)));
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
export async function* iterateEntries<Of extends Page, Entry>(
  fetchPage: (cursor: string | undefined) => Promise<Of>,
  selectEntries: (page: Of) => readonly Entry[],
): AsyncGenerator<Entry, void, undefined> {
  for (let cursor: string | undefined; ; ) {
    const page = await fetchPage(cursor);
    yield* selectEntries(page);
    if (page.next_cursor === null) return;
    cursor = page.next_cursor;
  }
}

const readData = <Data>(received: TextResponse): Data =>
  (parseResponse(received) as { readonly data: Data }).data;

const readTaggedData = <Data>(received: TextResponse): TaggedData<Data> => ({
  ...readData<Data>(received),
  etag: received.headers.get('etag') ?? '',
});

/**
 * fetch removes `.` and `..`, escaped or not: the path would change.
 * @throws SkilltraceError INVALID_REQUEST
 */
export function escapeId(id: string): string {
  if (!['', '.', '..'].includes(id)) return encodeURIComponent(id);
  throw new SkilltraceError('INVALID_REQUEST', `The id ${JSON.stringify(id)} cannot be part of a URL path`);
}
