/** What a route takes and what it returns. */
import type { Static, TObject } from 'typebox';
import type { Scope } from '../contracts/access.js';
import type { IfMatch } from '../contracts/preconditions.js';
import type { ApiError } from '../errors.js';
import { createQueryReader, type QueryReader } from './parse.js';

/** A request that passed all checks. */
export interface Call<Query = unknown> {
  /** The caller's tenant; empty where the route asks for no key. */
  readonly tenant: string;
  readonly query: Query;
  readonly body: Buffer;
  readonly mediaType: string;
  readonly idempotencyKey: string | null;
  /** Null unless a PUT or DELETE depends on a tag. */
  readonly ifMatch: IfMatch;
  /** @throws ClientGone */
  readonly stillWanted: () => void;
  /** For a handler that returns nothing: a promise for each answer costs more than all checks before it. */
  readonly respond: (reply: Reply) => void;
}

export interface Reply {
  readonly status: number;
  readonly body: string;
  /** Sent in place of a body that is too long to be made at once. */
  readonly pieces?: AsyncIterable<string>;
  /** Called when the answer is over, however far it came. */
  readonly onOver?: () => void;
  readonly headers?: Readonly<Record<string, string>>;
  /** The error that the answer states, for the log. */
  readonly error?: ApiError;
  /** Parts of the answer that failed by a defect, for the log. */
  readonly defects?: readonly ApiError[];
}

export interface BodyRules {
  /** Most bytes, before and after decompression. */
  readonly limit: number;
  readonly mediaTypes: readonly string[];
  readonly encodings: readonly string[];
}

/** @param ids path parameters, decoded. @throws ApiError, ClientGone */
type Handle<Query, Ids extends string[]> = (
  call: Call<Query>,
  ...ids: Ids
) => Promise<Reply> | Reply | undefined;

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** As uWebSockets.js matches it: `:name` stands for one segment. */
  readonly path: string;
  /** What the key must allow; null: no key is needed. */
  readonly scope: Scope | null;
  readonly body: BodyRules | null;
  /** Null where the query is ignored. */
  readonly query: QueryReader | null;
  readonly handle: Handle<unknown, string[]>;
}

/** One string for each parameter of the path. */
type IdsOf<Path extends string> = Path extends `${string}/:${string}/${infer Rest}`
  ? [string, ...IdsOf<`/${Rest}`>]
  : Path extends `${string}/:${string}`
    ? [string]
    : [];

/** What a route takes; nothing that is left out. */
interface Rules<Query> {
  readonly scope?: Scope;
  readonly body?: BodyRules | undefined;
  readonly query?: Query | undefined;
}

export const route = <Path extends string, Query extends TObject>(
  method: Route['method'],
  path: Path,
  { scope, body, query }: Rules<Query>,
  handle: Handle<Static<Query>, IdsOf<Path>>,
): Route => ({
  method,
  path,
  scope: scope ?? null,
  body: body ?? null,
  query: query === undefined ? null : createQueryReader(query),
  handle: handle as Route['handle'],
});

/** What the router finds for a request. */
export interface Match {
  /** Null for an unknown path, or for a known one under another method. */
  readonly route: Route | null;
  /** Methods of a known path; null for an unknown one. */
  readonly allow: string | null;
  /** Whether the path is served, or not found, without a key. */
  readonly keyless: boolean;
  /** Path parameters, still percent-encoded. */
  readonly parameters: readonly string[];
}
