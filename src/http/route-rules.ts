import type { TObject, TSchema } from 'typebox';
import type { ActivityName } from '../contracts/access/activity.js';
import type { BodyRules } from './route.js';

export const jsonMediaType = 'application/json';
export const largeBytes = 1024 * 1024;

export const createBodyRules = (
  limit: number,
  content: BodyRules['content'],
  ...encodings: string[]
): BodyRules => ({
  ...{ limit, content, mediaTypes: Object.keys(content) },
  encodings: ['identity', ...encodings],
});
export const smallBody = (schema: TSchema): BodyRules =>
  createBodyRules(16 * 1024, { [jsonMediaType]: schema });
export const largeBody = (schema: TSchema): BodyRules =>
  createBodyRules(largeBytes, { [jsonMediaType]: schema });

export const allowRead = <Query extends TObject>(query: Query | null = null) =>
  ({ scope: 'read', query }) as const;
export const allowReadWithBody = (body: BodyRules) => ({ scope: 'read', body }) as const;
/** @param activity name in the activity log; absent: not logged */
export const allowWrite = (body: BodyRules | null = null, activity?: ActivityName) =>
  ({ scope: 'write', body, activity }) as const;
export const allowAdmin = (body: BodyRules | null = null, activity?: ActivityName) =>
  ({ scope: 'admin', body, activity }) as const;
