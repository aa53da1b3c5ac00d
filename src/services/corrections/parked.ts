/** @throws ApiError UNAVAILABLE */
import type { Call } from '../../contracts/call.js';
import type { ParkedEntry, ParkedRows } from '../../store/corrections/parked-rows.js';
import { createCursors, listJson, type PageQuery, pageLimit, pageOf } from '../read/pages.js';

const cursors = createCursors('parked:', (text) => (/^\d{1,6} \d{1,15}-\d{1,15}$/.test(text) ? text : null));

export async function listParked(parked: ParkedRows, { query }: Call<PageQuery>): Promise<string> {
  const { limit = pageLimit, cursor } = query;
  const [place = '0', after = null] = cursors.decode(cursor)?.split(' ') ?? [];
  const streams = await parked.listStreams(null);
  const found: ParkedEntry[] = [];
  for await (const entry of parked.listEntries(streams.slice(Number(place)), after)) {
    found.push(entry);
    if (found.length > limit) break;
  }
  const page = pageOf(found, limit, ({ stream, parkedId }) =>
    cursors.encode(`${streams.indexOf(stream)} ${parkedId}`),
  );
  return listJson({}, 'rows', page, describeParked);
}

/** Omits the learner, because a stored list would outlive an erasure. */
export const describeParked = ({ stream, id, tenant, reason, parkedAt }: ParkedEntry) => ({
  ...{ stream, id, tenant, reason },
  parked_at: new Date(parkedAt).toISOString(),
});
