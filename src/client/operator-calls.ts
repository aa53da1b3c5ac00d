import { ModelCalls } from './model-calls.js';
import { type AllQuery, entriesOf, path } from './operations.js';
import type { CallOptions } from './transport.js';
import type * as Api from './types.js';

/** Operations on API keys and on the deployment. All reject with a SkilltraceError. */
export class OperatorCalls extends ModelCalls {
  /** What the client's own key may do. */
  async ownKey(options: CallOptions = {}): Promise<Api.OwnKey> {
    return this.get('/api/v1/key', options);
  }

  /** A page of the tenant's keys, for operators of `tenant` or of all, newest first. */
  async keys(query: Api.KeyQuery & CallOptions = {}): Promise<Api.KeyPage> {
    return this.get('/api/v1/keys', query);
  }

  /** All of these keys, newest first. */
  allKeys(
    query: AllQuery & Partial<Pick<Api.KeyQuery, 'tenant'>> = {},
  ): AsyncGenerator<Api.Key, void, undefined> {
    return entriesOf(
      (cursor) => this.keys({ ...query, cursor }),
      ({ keys }) => keys,
    );
  }

  /** The answer alone has the key; without it there may be one all the same. */
  async createKey(key: Api.KeySetting = {}, options: CallOptions = {}): Promise<Api.CreatedKey> {
    return this.make('/api/v1/keys', key, options);
  }

  /** Sets the quota of a key. */
  async changeKey(keyId: string, change: Api.KeyChange, options: CallOptions = {}): Promise<Api.Key> {
    const body = JSON.stringify(change);
    return this.data({ method: 'PATCH', path: path`/api/v1/keys/${keyId}`, body }, options);
  }

  /** The client's own key, too: its next calls are refused within 5 s. */
  async revokeKey(keyId: string, options: CallOptions = {}): Promise<Api.Key> {
    return this.remove(path`/api/v1/keys/${keyId}`, options);
  }

  /** A page of the tenant's erasures, newest first. */
  async erasures(query: Api.PageQuery & CallOptions = {}): Promise<Api.ErasurePage> {
    return this.get('/api/v1/erasures', query);
  }

  /** A page of the rows that ClickHouse refused and that were put aside. */
  async parked(query: Api.PageQuery & CallOptions = {}): Promise<Api.ParkedPage> {
    return this.get('/api/v1/parked', query);
  }

  /** Puts all of them back. */
  async redrive(options: CallOptions = {}): Promise<Api.Redriven> {
    return this.data({ method: 'POST', path: '/api/v1/parked/redrive' }, options);
  }

  /** What the last audit found. */
  async audits(options: CallOptions = {}): Promise<Api.LastAudit> {
    return this.get('/api/v1/audits', options);
  }

  /** The deployment and the versions of its parts. */
  async deployment(options: CallOptions = {}): Promise<Api.Deployment> {
    return this.get('/api/v1/deployment', options);
  }

  /** Figures of the service each second, until the loop is left or the service ends the stream. */
  async *live(query: Api.LiveQuery & CallOptions = {}): AsyncGenerator<Api.LiveFigures, void, undefined> {
    const { signal, ...rest } = query;
    const request = { method: 'GET', path: '/api/v1/live', query: rest } as const;
    for await (const line of this.transport.lines(request, { signal }))
      if (line.startsWith('data: ')) yield JSON.parse(line.slice('data: '.length)) as Api.LiveFigures;
  }
}
