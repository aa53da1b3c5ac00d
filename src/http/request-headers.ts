import type { HttpRequest } from 'uWebSockets.js';

/** Headers that decide what a request is: twice means that somebody on the way may have read it differently. */
const singleHeaders = new Set(['content-length', 'host', 'x-api-key', 'idempotency-key']);

/** All headers at once, because the request is gone after the first await. */
export function readHeaders(req: HttpRequest): {
  headers: Map<string, string>;
  framingProblem: string | null;
} {
  const headers = new Map<string, string>();
  let framingProblem: string | null = null;
  req.forEach((name, value) => {
    if (!headers.has(name)) headers.set(name, value);
    else if (singleHeaders.has(name)) framingProblem = `The header ${name} was sent more than once`;
    if (name === 'transfer-encoding' && value.toLowerCase() !== 'chunked') {
      framingProblem = 'Only the transfer encoding chunked is understood';
    }
    // uWebSockets.js takes it for 0: what follows as a body would be the next request.
    if (name === 'content-length' && value === '') framingProblem = 'The header content-length is empty';
  });
  return { headers, framingProblem };
}
