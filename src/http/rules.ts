import type { TObject, TSchema } from 'typebox';
import type { BodyRules } from './route.js';

export const json = 'application/json';
export const largeBytes = 1024 * 1024;

export const bodyOf = (limit: number, content: BodyRules['content'], ...encodings: string[]): BodyRules => ({
  ...{ limit, content, mediaTypes: Object.keys(content) },
  encodings: ['identity', ...encodings],
});
export const smallBody = (schema: TSchema): BodyRules => bodyOf(16 * 1024, { [json]: schema });
export const largeBody = (schema: TSchema): BodyRules => bodyOf(largeBytes, { [json]: schema });

export const reads = <Query extends TObject>(query: Query | null = null) =>
  ({ scope: 'read', query }) as const;
export const asks = (body: BodyRules) => ({ scope: 'read', body }) as const;
export const writes = (body: BodyRules | null = null) => ({ scope: 'write', body }) as const;
export const administers = (body: BodyRules | null = null) => ({ scope: 'admin', body }) as const;
