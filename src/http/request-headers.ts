import type { HttpRequest } from 'uWebSockets.js';

/** Headers that decide what a request is: twice means that somebody on the way may have read it differently. */
const isSingle = (name: string): boolean =>
  name === 'content-length' || name === 'host' || name === 'x-api-key' || name === 'idempotency-key';

/**
 * All headers at once, because the request is gone after its turn.
 * @returns lower-case names, each with its value behind it: for the few that a request has a list costs less than a map
 */
export function readHeaders(req: HttpRequest): { headers: string[]; framingProblem: string | null } {
  const headers: string[] = [];
  let framingProblem: string | null = null;
  req.forEach((name, value) => {
    if (isSingle(name) && headerOf(headers, name) !== null)
      framingProblem = `The header ${name} was sent more than once`;
    if (name === 'transfer-encoding' && value.toLowerCase() !== 'chunked')
      framingProblem = 'Only the transfer encoding chunked is understood';
    // uWebSockets.js takes it for 0: what follows as a body would be the next request.
    if (name === 'content-length' && value === '') framingProblem = 'The header content-length is empty';
    headers.push(name, value);
  });
  return { headers, framingProblem };
}

/** First value of a header, by its lower-case name; null if it was not sent. */
export function headerOf(headers: readonly string[], name: string): string | null {
  for (let i = 0; i < headers.length; i += 2) if (headers[i] === name) return headers[i + 1] as string;
  return null;
}
