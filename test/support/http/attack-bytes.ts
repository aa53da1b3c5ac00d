/** Requests whose end two parsers may see in different places, and request heads that no correct client sends. */

type Requests = Readonly<Record<string, string>>;

/** Ambiguous framings by name: a request with `body`, then the hidden request. @param body ASCII */
export function smuggledRequests(key: string, body: string, hidden: string): Requests {
  const head = `POST /api/v1/track-answer HTTP/1.1\r\nHost: a\r\nX-API-Key: ${key}\r\nContent-Type: application/json\r\n`;
  const { length } = body;
  const hex = length.toString(16);
  const chunk = `${hex}\r\n${body}\r\n0\r\n\r\n`;
  const chunked = 'Transfer-Encoding: chunked';
  const withLines = (lines: string, rest = chunk): string => `${head}${lines}\r\n\r\n${rest}${hidden}`;
  const withChunks = (chunks: string): string => withLines(chunked, chunks);
  const withLength = (value: string): string => withLines(`Content-Length: ${value}`, body);
  return {
    'CL.CL, the second 0': withLength(`${length}\r\nContent-Length: 0`),
    'CL.CL, the first 0': withLength(`0\r\nContent-Length: ${length}`),
    'a list of lengths': withLength(`${length}, ${length}`),
    'CL.TE': withLines(`Content-Length: 5\r\n${chunked}`, '0\r\n\r\n'),
    'TE.CL': withLines(`${chunked}\r\nContent-Length: 5`),
    'TE.TE': withLines(`${chunked}\r\nTransfer-Encoding: identity`),
    'TE.TE, reversed': withLines(`Transfer-Encoding: identity\r\n${chunked}`),
    'TE twice': withLines(`${chunked}\r\n${chunked}`),
    'TE: chunked, identity': withLines(`${chunked}, identity`),
    'TE behind a vertical tab': withLines('Transfer-Encoding: \x0bchunked'),
    'TE in quotes': withLines('Transfer-Encoding: "chunked"'),
    'a blank before the colon of TE': withLines('Transfer-Encoding : chunked'),
    'a blank before the colon of CL': withLines(`Content-Length : ${length}`, body),
    'TE on a folded line': withLines('Transfer-Encoding:\r\n chunked'),
    'CL on a folded line': withLines(`X: a\r\n Content-Length: ${length}`, body),
    'a bare LF in the head': withLines(`X: a\nContent-Length: ${length}`, body),
    'a bare CR in the head': withLines(`X: a\rContent-Length: ${length}`, body),
    'NUL in the length': withLength(`${length}\0`),
    'NUL in the name': withLines(`Content-\0Length: ${length}`, body),
    'a signed length': withLength(`+${length}`),
    'a negative length': withLength('-1'),
    'a hexadecimal length': withLength(`0x${hex}`),
    'an empty length': withLength(''),
    'a length beyond 64 bits': withLength(`${2n ** 64n + BigInt(length)}`),
    'a length beyond 32 bits': withLength(`${2n ** 32n + BigInt(length)}`),
    'a chunk beyond 64 bits': withChunks(`1${'0'.repeat(16)}${chunk}`),
    'a negative chunk': withChunks(`-${chunk}`),
    'a chunk with 0x': withChunks(`0x${chunk}`),
    'a chunk extension with a bare LF': withChunks(`${hex};a\n${body}\r\n0\r\n\r\n`),
    'a chunk extension without end': withChunks(`${hex};${'a'.repeat(200_000)}\r\n${body}\r\n0\r\n\r\n`),
    'a chunk size without end': withChunks('0'.repeat(1_000_000)),
    'a trailer that names a key': withChunks(`${hex}\r\n${body}\r\n0\r\nX-API-Key: other\r\n\r\n`),
    'no last chunk': withChunks(`${hex}\r\n${body}\r\n`),
  };
}

export function oddHeads(key: string): Requests {
  const get = (target: string, lines = ''): string =>
    `GET ${target} HTTP/1.1\r\nHost: a\r\nX-API-Key: ${key}\r\n${lines}\r\n`;
  return {
    'no HTTP': 'hello there\r\n\r\n',
    TLS: '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'.padEnd(64, '\x00'),
    'HTTP/0.9': 'GET /livez\r\n\r\n',
    'HTTP/1.0': 'GET /livez HTTP/1.0\r\nHost: a\r\n\r\n',
    'HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    'no host': 'GET /livez HTTP/1.1\r\n\r\n',
    'two hosts': get('/livez', 'Host: b\r\n'),
    'NUL in a header': get('/livez', 'X: a\0b\r\n'),
    'a header of 5 kB': get('/livez', `X: ${'x'.repeat(5000)}\r\n`),
    'a header of 20 MB without end': `GET /livez HTTP/1.1\r\nX: ${'x'.repeat(20_000_000)}`,
    '100,000 headers': get('/livez', 'X:y\r\n'.repeat(100_000)),
    'a path of 100 kB': get(`/api/v1/mastery/${'x'.repeat(100_000)}`),
    'a query of 100 kB': get(`/api/v1/skills?${'x'.repeat(100_000)}`),
    'an absolute target': get('http://a/livez'),
    'an authority': 'CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n',
    'an asterisk': 'OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n',
    'no target': 'GET  HTTP/1.1\r\nHost: a\r\n\r\n',
    'an upgrade to HTTP/2': get('/livez', 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n'),
  };
}

const mastery = '/api/v1/mastery';

/** By the status of the response. */
export const oddPaths: Readonly<Record<number, readonly string[]>> = {
  200: ['/livez?x=%00'],
  400: [
    ...['a%00b', '%c0%ae%c0%ae', '%ed%a0%80', '%', '%u002e', '\xff\xfe'].map((id) => `${mastery}/${id}`),
    `${mastery}/a%0d%0aX-API-Key:%20b`,
    '/api/v1/skills?limit=%ff',
  ],
  404: [
    ...['%2e%2e%2fhealth', '../health', '..%2f..%2fhealth', 'a;b', '.', '__proto__'].map(
      (id) => `${mastery}/${id}`,
    ),
    ...['/../../../../etc/passwd', '/..%2f..%2fetc%2fpasswd', '/api/v1/../../livez', '/./livez'],
    ...['//livez', '/livez/', '/livez;x', '/livez%00', '/%6civez', '/LIVEZ', '/\\livez'],
    ...['/api/v1//skills', '/api/v1/skills/', '/api/v1%2fskills', '/api/v1/skills/constructor'],
  ],
};
