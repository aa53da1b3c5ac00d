/** A receiver of traces by OTLP over HTTP with protobuf. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import type { Scoped } from '../scope.js';
import { listen } from './ports.js';

/** Values of a protobuf message by field number. */
type Fields = ReadonlyMap<number, readonly (Buffer | bigint)[]>;

function fieldsOf(bytes: Buffer): Fields {
  const fields = new Map<number, (Buffer | bigint)[]>();
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = BigInt(bytes.readUInt8(at++));
      value |= (byte & 127n) << shift;
      if (byte < 128n) return value;
    }
  };
  const take = (length: number): Buffer => {
    at += length;
    return bytes.subarray(at - length, at);
  };
  /** By wire type. */
  const readers: Readonly<Record<number, () => Buffer | bigint>> = {
    0: varint,
    1: () => take(8).readBigUInt64LE(),
    2: () => take(Number(varint())),
    5: () => BigInt(take(4).readUInt32LE()),
  };
  while (at < bytes.length) {
    const tag = Number(varint());
    const read = readers[tag & 7] ?? assert.fail(`wire type ${tag & 7} is unknown`);
    fields.set(tag >> 3, [...(fields.get(tag >> 3) ?? []), read()]);
  }
  return fields;
}

const messagesOf = (fields: Fields, field: number): Fields[] =>
  (fields.get(field) ?? []).map((bytes) => fieldsOf(bytes as Buffer));
const bytesOf = (fields: Fields, field: number): Buffer =>
  (fields.get(field)?.[0] ?? Buffer.alloc(0)) as Buffer;
const numberOf = (fields: Fields, field: number): bigint => (fields.get(field)?.[0] ?? 0n) as bigint;

/** Field numbers of opentelemetry/proto/trace/v1/trace.proto. */
const readSpan = (span: Fields) => ({
  traceId: bytesOf(span, 1).toString('hex'),
  spanId: bytesOf(span, 2).toString('hex'),
  traceState: bytesOf(span, 3).toString(),
  parentId: bytesOf(span, 4).toString('hex'),
  name: bytesOf(span, 5).toString(),
  /** 1: internal, 2: server, 3: client, 5: consumer. */
  kind: Number(numberOf(span, 6)),
  /** Unix nanoseconds. */
  start: numberOf(span, 7),
  end: numberOf(span, 8),
  attributes: attributesOf(messagesOf(span, 9)),
  /** Ids of linked spans. */
  links: messagesOf(span, 13).map((link) => bytesOf(link, 2).toString('hex')),
  failed: messagesOf(span, 15).some((status) => numberOf(status, 3) === 2n),
});

export type ReceivedSpan = ReturnType<typeof readSpan>;

/** Strings and integers. */
const attributesOf = (pairs: readonly Fields[]): Record<string, string | number> =>
  Object.fromEntries(
    pairs.map((pair) => {
      const [value] = messagesOf(pair, 2) as [Fields];
      const text = value.has(1) ? bytesOf(value, 1).toString() : Number(numberOf(value, 3));
      return [bytesOf(pair, 1).toString(), text];
    }),
  );

/** Accepts POST /v1/traces; other paths get 404. */
export async function startReceiver(t: Scoped) {
  const bodies: Buffer[] = [];
  const server = createServer(async (request, response) => {
    bodies.push(await buffer(request));
    response.writeHead(request.url === '/v1/traces' ? 200 : 404).end();
  });
  return {
    endpoint: `http://127.0.0.1:${await listen(t, server)}`,
    bodies,
    spans: (): ReceivedSpan[] =>
      bodies
        .flatMap((body) => messagesOf(fieldsOf(body), 1))
        .flatMap((resource) => messagesOf(resource, 2))
        .flatMap((scope) => messagesOf(scope, 2))
        .map(readSpan),
  };
}
