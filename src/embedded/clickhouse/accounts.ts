import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { BridgeError } from './errors.js';

/** The engine inside has no users: accounts are the bridge's. */
export interface Account {
  readonly name: string;
  readonly password: string;
  readonly readonly: boolean;
}

interface Credentials {
  readonly user: string;
  readonly password: string;
}

function headerCredentials(headers: IncomingHttpHeaders): Credentials | null {
  const user = headers['x-clickhouse-user'];
  const key = headers['x-clickhouse-key'];
  if (user === undefined && key === undefined) return null;
  return { user: String(user ?? 'default'), password: String(key ?? '') };
}

function basicCredentials(authorization: string | undefined): Credentials | null {
  const encoded = /^Basic\s+(\S+)$/i.exec(authorization ?? '')?.[1];
  if (encoded === undefined) return null;
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  return colon < 0
    ? { user: text, password: '' }
    : { user: text.slice(0, colon), password: text.slice(colon + 1) };
}

function credentialsOf(headers: IncomingHttpHeaders, query: URLSearchParams): Credentials {
  return (
    headerCredentials(headers) ??
    basicCredentials(headers.authorization) ?? {
      user: query.get('user') ?? 'default',
      password: query.get('password') ?? '',
    }
  );
}

function sameSecret(given: string, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}

/** The account of a request, by headers, basic auth or query; wrong ones raise code 516. */
export function authenticate(
  accounts: readonly Account[],
  headers: IncomingHttpHeaders,
  query: URLSearchParams,
): Account {
  const { user, password } = credentialsOf(headers, query);
  const account = accounts.find((candidate) => candidate.name === user);
  if (sameSecret(password, account?.password ?? '') && account !== undefined) return account;
  throw new BridgeError(
    516,
    'AUTHENTICATION_FAILED',
    `${user.slice(0, 100)}: Authentication failed: password is incorrect, or there is no user with such name.`,
  );
}
