/** What is told of the service each second. */
import Type from 'typebox';
import { nullable } from '../checked.js';
import { Amount, Count, each, Time } from './bodies.js';

export const LiveFigures = Type.Object({
  at: Time,
  processes: Type.Integer({ minimum: 0, description: 'API processes that the figures are of' }),
  ...each(nullable(Amount), 'answers_per_second', 'requests_per_second'),
  errors: nullable(
    Type.Record(Type.String(), Amount, {
      description:
        'Per second, by the status; null, as the other rates, where nobody has looked a moment before',
    }),
  ),
  latency_ms: nullable(Type.Object(each(Amount, 'p50', 'p90', 'p99'))),
  ...each(
    nullable(Count),
    'outbox_length',
    'journal_length',
    'parked_rows',
    'lanes_waiting',
    'connections_open',
  ),
  oldest_pending_seconds: nullable(Amount),
  ...each(nullable(Type.Boolean()), 'redis_up', 'clickhouse_up'),
  redis_memory: nullable(Type.Object({ used: Count, limit: nullable(Count) })),
});

export const LiveEvents = Type.String({
  contentMediaType: 'text/event-stream',
  pattern: '^data: \\{"at":',
  description: 'Each second a line `data: ` with JSON of rates and states, and an empty line',
});
