/** Requests whose end two readers could see in different places, and heads that no client sends by mistake. */

/** A second request that hides behind each attack; it must never be run. */
export type Hidden = string;

const head = (key: string, lines: string): string =>
  `POST /api/v1/track-answer HTTP/1.1\r\nHost: a\r\nX-API-Key: ${key}\r\nContent-Type: application/json\r\n${lines}\r\n\r\n`;

const chunked = 'Transfer-Encoding: chunked';

/**
 * Ambiguous framing by name: the first request with `body`, then the hidden one.
 * @param body of the first request, ASCII
 */
export function smugglings(key: string, body: string, hidden: Hidden): Readonly<Record<string, string>> {
  const { length } = body;
  const hex = length.toString(16);
  const chunk = `${hex}\r\n${body}\r\n0\r\n\r\n`;
  const withLines = (lines: string, rest: string): string => head(key, lines) + rest + hidden;
  const withChunks = (chunks: string): string => withLines(chunked, chunks);
  const lengthOf = (value: string): string => withLines(`Content-Length: ${value}`, body);
  return {
    'CL.CL, equal': withLines(`Content-Length: ${length}\r\nContent-Length: ${length}`, body),
    'CL.CL, the second 0': withLines(`Content-Length: ${length}\r\nContent-Length: 0`, body),
    'CL.CL, the first 0': withLines(`Content-Length: 0\r\nContent-Length: ${length}`, body),
    'a list of lengths': lengthOf(`${length}, ${length}`),
    'CL.TE': withLines(`Content-Length: 5\r\n${chunked}`, '0\r\n\r\n'),
    'TE.CL': withLines(`${chunked}\r\nContent-Length: 5`, chunk),
    'TE.TE, identity': withLines(`${chunked}\r\nTransfer-Encoding: identity`, chunk),
    'TE.TE, turned': withLines(`Transfer-Encoding: identity\r\n${chunked}`, chunk),
    'TE twice': withLines(`${chunked}\r\n${chunked}`, chunk),
    'TE: xchunked': withLines('Transfer-Encoding: xchunked', chunk),
    'TE: chunked, identity': withLines('Transfer-Encoding: chunked, identity', chunk),
    'TE behind a vertical tab': withLines('Transfer-Encoding: \x0bchunked', chunk),
    'TE in quotes': withLines('Transfer-Encoding: "chunked"', chunk),
    'a blank before the colon of TE': withLines('Transfer-Encoding : chunked', chunk),
    'a blank before the colon of CL': withLines(`Content-Length : ${length}`, body),
    'TE on a folded line': withLines('Transfer-Encoding:\r\n chunked', chunk),
    'CL on a folded line': withLines(`X: a\r\n Content-Length: ${length}`, body),
    'a bare LF in the head': withLines(`X: a\nContent-Length: ${length}`, body),
    'a bare CR in the head': withLines(`X: a\rContent-Length: ${length}`, body),
    'NUL in the length': lengthOf(`${length}\0`),
    'NUL in the name': withLines(`Content-\0Length: ${length}`, body),
    'a signed length': lengthOf(`+${length}`),
    'a negative length': lengthOf('-1'),
    'a hexadecimal length': lengthOf(`0x${hex}`),
    'an empty length': lengthOf(''),
    'a length beyond 64 bits': lengthOf(`${2n ** 64n + BigInt(length)}`),
    'a length beyond all': lengthOf('9'.repeat(40)),
    'a length beyond 32 bits': lengthOf(`${2n ** 32n + BigInt(length)}`),
    'a chunk beyond 64 bits': withChunks(`1${'0'.repeat(16)}${hex}\r\n${body}\r\n0\r\n\r\n`),
    'a chunk of 2^64 - 1': withChunks(`ffffffffffffffff\r\n${body}\r\n0\r\n\r\n`),
    'a negative chunk': withChunks(`-${hex}\r\n${body}\r\n0\r\n\r\n`),
    'a chunk with 0x': withChunks(`0x${hex}\r\n${body}\r\n0\r\n\r\n`),
    'a chunk extension': withChunks(`${hex};a=b\r\n${body}\r\n0\r\n\r\n`),
    'a chunk extension with a bare LF': withChunks(`${hex};a\n${body}\r\n0\r\n\r\n`),
    'a chunk extension without end': withChunks(`${hex};${'a'.repeat(200_000)}\r\n${body}\r\n0\r\n\r\n`),
    'a chunk size without end': withChunks('0'.repeat(1_000_000)),
    'a trailer that names a key': withChunks(`${hex}\r\n${body}\r\n0\r\nX-API-Key: other\r\n\r\n`),
    'no last chunk': withChunks(`${hex}\r\n${body}\r\n`),
  };
}

/** Heads too long or too many, and targets that name no path of ours. */
export function oddHeads(key: string): Readonly<Record<string, string>> {
  const get = (target: string, lines = ''): string =>
    `GET ${target} HTTP/1.1\r\nHost: a\r\nX-API-Key: ${key}\r\n${lines}\r\n`;
  return {
    'a header of 100 kB': get('/livez', `X: ${'x'.repeat(100_000)}\r\n`),
    'a name of 100 kB': get('/livez', `${'x'.repeat(100_000)}: x\r\n`),
    'a header of 20 MB without end': `GET /livez HTTP/1.1\r\nX: ${'x'.repeat(20_000_000)}`,
    '200 headers': get('/livez', 'X:y\r\n'.repeat(200)),
    '100,000 headers': get('/livez', 'X:y\r\n'.repeat(100_000)),
    'a path of 100 kB': get(`/api/v1/mastery/${'x'.repeat(100_000)}`),
    'a query of 100 kB': get(`/api/v1/skills?${'x'.repeat(100_000)}`),
    'two hosts': get('/livez', 'Host: b\r\n'),
    'an absolute target': get('http://a/livez'),
    'an absolute target without path': get('http://a'),
    'an authority': 'CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n',
    asterisk: 'OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n',
    'no target': 'GET  HTTP/1.1\r\nHost: a\r\n\r\n',
    'HTTP/0.9': 'GET /livez\r\n\r\n',
    'HTTP/1.2': 'GET /livez HTTP/1.2\r\nHost: a\r\n\r\n',
    'an upgrade to a web socket': get(
      '/livez',
      'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n',
    ),
    'an upgrade to HTTP/2': get(
      '/livez',
      'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n',
    ),
  };
}

/** Paths that other servers were led astray by: by what the service makes of them. */
export const oddPaths: Readonly<Record<number, readonly string[]>> = {
  200: ['/livez?x=%00'],
  400: [
    '/api/v1/mastery/a%00b',
    '/api/v1/mastery/%c0%ae%c0%ae',
    '/api/v1/mastery/%e0%80%af',
    '/api/v1/mastery/%f0%80%80%af',
    '/api/v1/mastery/%ed%a0%80',
    '/api/v1/mastery/%',
    '/api/v1/mastery/%u002e',
    '/api/v1/mastery/a%0d%0aX-API-Key:%20b',
    '/api/v1/mastery/\xff\xfe',
    '/api/v1/skills?limit=%ff',
    '/api/v1/skills?limit=\xff',
  ],
  404: [
    '/api/v1/mastery/%2e%2e%2fhealth',
    '/api/v1/mastery/../health',
    '/api/v1/mastery/..%2f..%2fhealth',
    '/api/v1/../../livez',
    '/../../../../etc/passwd',
    '/..%2f..%2fetc%2fpasswd',
    '//livez',
    '/livez/',
    '/livez;x',
    '/livez%00',
    '/%6civez',
    '/LIVEZ',
    '/./livez',
    '/\\livez',
    '/api/v1//skills',
    '/api/v1/skills/',
    '/api/v1%2fskills',
    '/api/v1/mastery/a;b',
    '/api/v1/mastery/a%252fb',
    '/api/v1/mastery/%2f',
    '/api/v1/mastery/.',
    '/api/v1/mastery/%e2%80%8b',
    '/api/v1/mastery/__proto__',
    '/api/v1/skills/constructor',
    '/api/v1/goals/__proto__',
  ],
};
