/** Connection errors of Redis, ClickHouse and webhook receivers, as text that says what to do. */

export interface ConnectionProblem {
  /** Contains no passwords. */
  readonly text: string;
  /** Do not retry until a setting changes. */
  readonly isPermanent: boolean;
}

const temporary = (text: string): ConnectionProblem => ({ text, isPermanent: false });
const permanent = (text: string): ConnectionProblem => ({ text, isPermanent: true });

const untrusted = permanent(
  'the certificate is not trusted; add its authority with NODE_EXTRA_CA_CERTS=FILE',
);
const wrongLogin = permanent('wrong user name or password');
const noTls = permanent('the URL uses TLS but the server does not support TLS');

const withCodes = (problem: ConnectionProblem, ...codes: string[]) =>
  Object.fromEntries(codes.map((code) => [code, problem]));

/** By error code of Node or OpenSSL, first word of Redis, or number of ClickHouse. */
const problemsByCode: Readonly<Record<string, ConnectionProblem>> = {
  ECONNREFUSED: temporary('connection refused'),
  ENOTFOUND: temporary('host not found'),
  EAI_AGAIN: temporary('temporary failure in name resolution'),
  ETIMEDOUT: temporary('connection timed out'),
  ECONNRESET: temporary('connection closed by the server'),
  EHOSTUNREACH: temporary('host unreachable'),
  ENETUNREACH: temporary('network unreachable'),
  EMFILE: temporary('this process has too many open files; raise ulimit -n and restart'),
  ...withCodes(untrusted, 'DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN', 'CERT_UNTRUSTED'),
  ...withCodes(untrusted, 'UNABLE_TO_GET_ISSUER_CERT', 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY'),
  ...withCodes(untrusted, 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'),
  CERT_HAS_EXPIRED: permanent('the certificate has expired'),
  CERT_NOT_YET_VALID: permanent('the certificate is not valid yet according to the clock of this machine'),
  ERR_TLS_CERT_ALTNAME_INVALID: permanent('the certificate is for another host name'),
  ...withCodes(noTls, 'EPROTO', 'ERR_SSL_WRONG_VERSION_NUMBER'),
  ...withCodes(wrongLogin, 'WRONGPASS', '192', '193', '194', '516'),
  ...withCodes(permanent('the user in the URL lacks permissions'), 'NOPERM', '497'),
  NOAUTH: permanent('the server requires a password but the URL has none'),
  DENIED: permanent('Redis is in protected mode and rejects other machines'),
  LOADING: temporary('Redis is still loading its data'),
};

export function describeConnectionError(error: unknown): ConnectionProblem {
  const code = findErrorCode(error);
  const problem = problemsByCode[code];
  if (problem !== undefined) return { ...problem, text: `${problem.text} (${code})` };
  if (!(error instanceof Error)) return temporary(String(error));
  if (error.cause instanceof Error) return describeConnectionError(error.cause);
  if (error.message.startsWith('Unknown RESP type')) return permanent('the server is not Redis');
  return temporary(error.message);
}

function findErrorCode(error: unknown): string {
  if (!(error instanceof Error) || isOtherTlsError(error)) return '';
  if (error.name === 'ReplyError') return error.message.split(/[\s:]/, 1)[0] ?? '';
  return 'code' in error ? String(error.code) : '';
}

/** Node reports all TLS errors of writes as EPROTO. */
const isOtherTlsError = ({ message }: Error): boolean =>
  message.includes('EPROTO') && !message.includes('wrong version number');
