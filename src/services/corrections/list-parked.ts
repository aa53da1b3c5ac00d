/** @throws ApiError UNAVAILABLE */
import type { Call } from '../../contracts/access/call.js';
import type { ParkedEntry, ParkedRows } from '../../store/corrections/redrive.js';
import { buildPage, createCursors, defaultPageLimit, encodeList, type PageQuery } from '../paging/pages.js';

const cursors = createCursors('parked:', (text) => (/^\d{1,6} \d{1,15}-\d{1,15}$/.test(text) ? text : null));

export async function listParked(parked: ParkedRows, { query }: Call<PageQuery>): Promise<string> {
  const { limit = defaultPageLimit, cursor } = query;
  const [streamIndex = '0', after = null] = cursors.decode(cursor)?.split(' ') ?? [];
  const streams = await parked.listStreams(null);
  const found: ParkedEntry[] = [];
  for await (const entry of parked.listEntries(streams.slice(Number(streamIndex)), after)) {
    found.push(entry);
    if (found.length > limit) break;
  }
  const page = buildPage(found, limit, ({ stream, parkedId }) =>
    cursors.encode(`${streams.indexOf(stream)} ${parkedId}`),
  );
  return encodeList({}, 'rows', page, describeParkedRow);
}

/** Omits the learner, because a stored list would outlive an erasure. */
export const describeParkedRow = ({ stream, id, tenant, reason, parkedAt }: ParkedEntry) => ({
  ...{ stream, id, tenant, reason },
  parked_at: new Date(parkedAt).toISOString(),
});
