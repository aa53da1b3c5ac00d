/** What is told of API keys and of the deployment, to those who manage them. */
import Type from 'typebox';
import { nullable } from '../checked.js';
import { Scopes, Tenant } from '../keys.js';
import { Time } from './bodies.js';

const key = {
  key_id: Type.String({ description: 'The first 12 characters of its SHA-256' }),
  tenant: Tenant,
  scopes: Scopes,
  requests_per_minute: nullable(Type.Integer({ minimum: 1 })),
  development: Type.Boolean({ description: 'Works on the machine of the service only' }),
  created_at: Time,
};
export const OwnKey = Type.Object(key);

const stored = { ...key, revoked_at: nullable(Time) };
export const Key = Type.Object(stored);
export const KeyPage = Type.Object({ keys: Type.Array(Key), next_cursor: nullable(Type.String()) });
export const CreatedKey = Type.Object({
  ...stored,
  key: Type.String({ pattern: '^sk-', description: 'Shown here and nowhere else' }),
});
