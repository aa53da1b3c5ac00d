/** Connection errors of Redis, ClickHouse and webhook receivers, as text that says what to do. */

export interface Trouble {
  /** Contains no passwords. */
  readonly text: string;
  /** Do not retry until a setting changes. */
  readonly isFinal: boolean;
}

const passing = (text: string): Trouble => ({ text, isFinal: false });
const final = (text: string): Trouble => ({ text, isFinal: true });

const untrusted = final('its certificate is not trusted: NODE_EXTRA_CA_CERTS=FILE adds the authority');
const wrongLogin = final('wrong user name or password');
const noTls = final('the URL asks for TLS, the server speaks none');

const alike = (trouble: Trouble, ...codes: string[]) =>
  Object.fromEntries(codes.map((code) => [code, trouble]));

/** By error code of Node or OpenSSL, first word of Redis, or number of ClickHouse. */
const known: Readonly<Record<string, Trouble>> = {
  ECONNREFUSED: passing('connection refused'),
  ENOTFOUND: passing('host not found'),
  EAI_AGAIN: passing('host not found for now'),
  ETIMEDOUT: passing('no answer'),
  ECONNRESET: passing('connection closed by the other side'),
  EHOSTUNREACH: passing('no way to the host'),
  ENETUNREACH: passing('no way to the network'),
  EMFILE: passing('this process has too many open files: start it with a higher ulimit -n'),
  ...alike(untrusted, 'DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN', 'CERT_UNTRUSTED'),
  ...alike(untrusted, 'UNABLE_TO_GET_ISSUER_CERT', 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY'),
  ...alike(untrusted, 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'),
  CERT_HAS_EXPIRED: final('its certificate has expired'),
  CERT_NOT_YET_VALID: final('its certificate is not valid yet, by the clock of this machine'),
  ERR_TLS_CERT_ALTNAME_INVALID: final('its certificate is for another host name'),
  ...alike(noTls, 'EPROTO', 'ERR_SSL_WRONG_VERSION_NUMBER'),
  ...alike(wrongLogin, 'WRONGPASS', '192', '193', '194', '516'),
  ...alike(final('the user of the URL may not do what is needed'), 'NOPERM', '497'),
  NOAUTH: final('a password is needed, and the URL has none'),
  DENIED: final('it is in protected mode and takes no other machine'),
  LOADING: passing('it is still reading its data'),
};

export function troubleOf(error: unknown): Trouble {
  const code = codeOf(error);
  const trouble = known[code];
  if (trouble !== undefined) return { ...trouble, text: `${trouble.text} (${code})` };
  if (!(error instanceof Error)) return passing(String(error));
  if (error.cause instanceof Error) return troubleOf(error.cause);
  if (error.message.startsWith('Unknown RESP type')) return final('what answers there is no Redis');
  return passing(error.message);
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error) || isOtherTls(error)) return '';
  if (error.name === 'ReplyError') return error.message.split(/[\s:]/, 1)[0] ?? '';
  return 'code' in error ? String(error.code) : '';
}

/** Node reports all TLS errors of writes as EPROTO. */
const isOtherTls = ({ message }: Error): boolean =>
  message.includes('EPROTO') && !message.includes('wrong version number');
