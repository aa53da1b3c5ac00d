import type { Call } from '../../contracts/access/call.js';
import type { ActivityStore } from '../../store/operations/activity-store.js';
import { buildPage, createCursors, defaultPageLimit, encodeList, type PageQuery } from '../paging/pages.js';

const cursors = createCursors('activity:', (text) => (/^\d{1,15}-\d{1,15}$/.test(text) ? text : null));

/** Operators get the entries of all tenants. @throws ApiError UNAVAILABLE */
export async function listActivity(
  activity: Pick<ActivityStore, 'list'>,
  { grant, tenant, query }: Call<PageQuery>,
): Promise<string> {
  const { limit = defaultPageLimit, cursor } = query;
  const ownTenant = grant.scopes.includes('operator') ? null : tenant;
  const found = await activity.list(ownTenant, cursors.decode(cursor), limit + 1);
  const page = buildPage(found, limit, ({ id }) => cursors.encode(id));
  return encodeList({}, 'entries', page, ({ id, tenant, keyId, keyName, action, target }) => ({
    at: new Date(Number.parseInt(id, 10)).toISOString(),
    ...{ tenant, key_id: keyId, key_name: keyName, action, target },
  }));
}
