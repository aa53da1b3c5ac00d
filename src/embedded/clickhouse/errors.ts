export class BridgeError extends Error {
  constructor(code: number, type: string, text: string) {
    super(`Code: ${code}. DB::Exception: ${text} (${type})`);
  }
}

/** The reader disconnected, or the server stops. */
export const createCancelledError = (): BridgeError =>
  new BridgeError(394, 'QUERY_WAS_CANCELLED', 'Query was cancelled');

export function rejectAccess(what: string): never {
  throw new BridgeError(497, 'ACCESS_DENIED', `analyst: Not enough privileges to read ${what}`);
}

/** As in ClickHouse's src/Server/HTTP/exceptionCodeToHTTPStatus.cpp. Others are 500. */
const codesByStatus: Readonly<Record<number, string>> = {
  400: '6 8 15 25 26 27 38 41 43 44 53 62 64 68 72 76 117 167 168 223 321 427 456 457',
  401: '194',
  403: '192 193 497 516',
  404: '46 47 50 56 60 63 70 73 78 81 115 336',
  408: '159',
  413: '307 1019',
  501: '48',
  503: '202 209 439',
};
const statusByCode = new Map(
  Object.entries(codesByStatus).flatMap(([status, codes]) =>
    codes.split(' ').map((code) => [Number(code), Number(status)]),
  ),
);

export function toFailure(error: unknown): { code: number; status: number; body: string } {
  const message = error instanceof Error ? error.message : String(error);
  const code = Number(/^Code: (\d+)/.exec(message)?.[1] ?? 1002);
  const body = message.startsWith('Code: ')
    ? message
    : `Code: 1002. DB::Exception: ${message} (UNKNOWN_EXCEPTION)`;
  return { code, status: statusByCode.get(code) ?? 500, body: `${body}\n` };
}
