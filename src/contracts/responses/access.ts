import Type from 'typebox';
import { activityNames } from '../access/activity.js';
import { KeyName, KeyNote, Scopes, Tenant } from '../access/keys.js';
import { nullable } from '../schema/validate.js';
import { Amount, Count, Day, namedFields, pageSchema, Time } from './shared-schemas.js';

const key = {
  key_id: Type.String({ description: 'First 12 characters of the SHA-256 of the key.' }),
  tenant: Tenant,
  name: nullable(KeyName),
  note: nullable(KeyNote),
  scopes: Scopes,
  requests_per_minute: nullable(Type.Integer({ minimum: 1 })),
  development: Type.Boolean({ description: 'If true, the key only works on the machine of the service.' }),
  created_at: Time,
};
export const OwnKey = Type.Object({
  ...key,
  time_zone: Type.String({ description: 'Time zone of the tenant, IANA name.' }),
});

const stored = {
  ...{ ...key, revoked_at: nullable(Time) },
  last_used_at: nullable(
    Type.String({ format: 'date-time', description: 'Last request with the key, to the minute.' }),
  ),
};
export const Key = Type.Object(stored);
export const KeyPage = pageSchema('keys', Key);
export const CreatedKey = Type.Object({
  ...stored,
  key: Type.String({ pattern: '^sk-', description: 'The key. No other response contains it.' }),
});

const ParkedRow = Type.Object({
  ...namedFields(Type.String(), 'stream', 'id', 'reason'),
  tenant: nullable(Tenant),
  parked_at: Time,
});
export const ParkedPage = pageSchema('rows', ParkedRow);
export const RedriveResult = Type.Object(namedFields(Count, 'moved', 'stayed', 'erased'));

const Mismatch = Type.Object({
  ...namedFields(Type.String(), 'kind', 'tenant', 'meaning'),
  day: Type.String({
    description: 'UTC day of arrival, or local day of the answers, YYYY-MM-DD, or `all days`.',
  }),
  partition: nullable(Count),
  place: nullable(Type.String()),
  ...namedFields(Type.Integer(), 'expected', 'found'),
  look: Type.String({ description: 'SQL query that shows the affected rows.' }),
});
const Audit = Type.Object({
  at: Time,
  seconds: Amount,
  ...namedFields(Day, 'from', 'to'),
  ...namedFields(Type.Integer(), 'accepted', 'removed', 'stored', 'waiting', 'parked', 'raw'),
  mismatches: Type.Array(Mismatch, { description: 'At most 200 mismatches.' }),
  mismatches_by_kind: Type.Record(Type.String(), Count),
  not_compared: Type.Array(Type.String(), { description: 'At most 200 reasons.' }),
  not_compared_count: Count,
});
const running = { running: Type.Boolean({ description: 'True while an audit is running.' }) };
export const LastAudit = Type.Object({ ...running, last: nullable(Audit) });
export const StartedAudit = Type.Object(running);

export const ActivityPage = pageSchema(
  'entries',
  Type.Object({
    at: Time,
    tenant: Tenant,
    key_id: Type.String({ description: 'Key that made the change.' }),
    key_name: nullable(KeyName),
    action: Type.Enum([...activityNames]),
    target: nullable(
      Type.String({ description: 'Id of the key, webhook, skill, group, erasure or model version.' }),
    ),
  }),
);

export const Deployment = Type.Object({
  ...namedFields(Type.String(), 'version', 'deployment_id', 'node_version', 'redis_version'),
  created_at: Time,
  partitions: Count,
  schema_version: nullable(Count),
  clickhouse_version: nullable(Type.String()),
});

const rates = {
  at: Time,
  ...namedFields(nullable(Amount), 'answers_per_second', 'requests_per_second'),
  errors: nullable(
    Type.Record(Type.String(), Amount, {
      description: 'Responses per second by status. Rates are null at the first measurement.',
    }),
  ),
  latency_ms: nullable(Type.Object(namedFields(Amount, 'p50', 'p90', 'p99'))),
};

export const LiveHistory = Type.Object({
  ...namedFields(Count, 'hours', 'step_minutes'),
  points: Type.Array(Type.Object(rates), {
    description: 'Means per step, oldest first. Steps without a running service are missing.',
  }),
  keys: Type.Array(
    Type.Object({
      key_id: Type.String(),
      name: nullable(KeyName),
      tenant: nullable(Tenant),
      ...namedFields(Count, 'requests', 'answers', 'errors', 'rejected'),
    }),
    { description: 'The ten keys with the most requests. `rejected`: status 429, not part of `errors`.' },
  ),
});

export const LiveFigures = Type.Object({
  ...rates,
  processes: Type.Integer({ minimum: 0, description: 'API processes included in the figures.' }),
  ...namedFields(nullable(Count), 'outbox_length', 'journal_length', 'parked_rows'),
  ...namedFields(nullable(Count), 'lanes_waiting', 'connections_open'),
  oldest_pending_seconds: nullable(Amount),
  ...namedFields(nullable(Type.Boolean()), 'redis_up', 'clickhouse_up'),
  redis_memory: nullable(Type.Object({ used: Count, limit: nullable(Count) })),
});

export const LiveEvents = Type.String({
  contentMediaType: 'text/event-stream',
  pattern: '^data: \\{"at":',
  description: 'Server-sent events: one `data: ` line with JSON per second, followed by an empty line.',
});
