export class QuotaPause {
  #until = 0;

  /** Unix milliseconds. */
  get until(): number {
    return this.#until;
  }

  /** @returns milliseconds of Retry-After */
  update({ status, headers }: Response): number | null {
    const retryAfter = parseRetryAfterMs(headers.get('retry-after'));
    const pause = status === 429 ? retryAfter : parseExhaustedMs(headers.get('ratelimit'));
    if (pause !== null) this.#until = Math.max(this.#until, Date.now() + pause);
    return retryAfter;
  }
}

/** Seconds or a date (RFC 9110, 10.2.3). */
function parseRetryAfterMs(header: string | null): number | null {
  if (header === null) return null;
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return Number.isNaN(ms) ? null : Math.max(0, ms);
}

/** Time until the next window, if no request remains (draft-ietf-httpapi-ratelimit-headers). */
function parseExhaustedMs(header: string | null): number | null {
  const [, seconds] = /;r=0;t=(\d+)/.exec(header ?? '') ?? [];
  return seconds === undefined ? null : Number(seconds) * 1000;
}
