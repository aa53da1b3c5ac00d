/** How the service is. */
import Type, { type TProperties, type TSchema } from 'typebox';
import { Count, nullable } from './parts.js';

const check = {
  status: Type.Enum(['ok', 'failing']),
  reason: Type.Optional(Type.String()),
} satisfies TProperties;

/** @param status as it is in the answer that it belongs to */
const health = <Status extends TSchema>(status: Status) =>
  Type.Object({
    status,
    version: Type.String(),
    uptime_seconds: Count,
    idempotency_window_seconds: Count,
    idempotency_min_window_seconds: Count,
    checks: Type.Object({
      redis: Type.Object(check),
      clickhouse: Type.Object(check),
      workers: Type.Object({ ...check, threads: Count, waiting: Count }),
      pipeline: Type.Object({
        ...check,
        outbox_length: nullable(Count),
        erasures_due: nullable(Count),
        oldest_pending_seconds: nullable(Type.Number({ minimum: 0 })),
        journal_length: nullable(Count),
        parked: nullable(Count),
      }),
    }),
  });

export const Health = health(Type.Enum(['ok', 'degraded']));
export const HealthDown = health(Type.Literal('down'));

const reasons = Type.Array(Type.String());
const probe = <Well extends string>(status: Well) => Type.Object({ status: Type.Literal(status), reasons });

export const Live = probe('ok');
export const Failing = probe('failing');
export const Ready = probe('ready');
export const NotReady = probe('not ready');

/** Prometheus text format. */
export const MetricsText = Type.String({ pattern: '^# HELP ' });
