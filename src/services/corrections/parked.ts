/** Rows that ClickHouse refused and that were put aside: listed, and put back. All throw ApiError UNAVAILABLE. */
import type { ParkedEntry, ParkedRows, Redriven } from '../../store/corrections/parked-rows.js';
import { createCursors, listJson, type PageQuery, pageLimit } from '../read/pages.js';

export type ParkedPorts = ParkedRows;

/** Place of the stream among all, and the parked entry in it. */
const cursors = createCursors('parked:', (text) => (/^\d{1,6} \d+-\d+$/.test(text) ? text : null));

/** JSON of GET /api/v1/parked, stream by stream, the oldest first. @throws ApiError INVALID_REQUEST */
export async function listParked(parked: ParkedPorts, query: PageQuery): Promise<string> {
  const { limit = pageLimit, cursor } = query;
  const [place = '0', after = null] = cursors.decode(cursor)?.split(' ') ?? [];
  const streams = await parked.streams(null);
  const items: ParkedEntry[] = [];
  for await (const entry of parked.entries(streams.slice(Number(place)), after)) {
    items.push(entry);
    if (items.length > limit) break;
  }
  const last = items.length > limit ? items.splice(limit - 1).shift() : undefined;
  if (last !== undefined) items.push(last);
  const next_cursor = last && cursors.encode(`${streams.indexOf(last.stream)} ${last.parkedId}`);
  return listJson(
    {},
    { name: 'rows', items, describe: describeParked },
    { next_cursor: next_cursor ?? null },
  );
}

/** What is told of a parked row: not its learner, whom a list that is kept would outlive. */
export const describeParked = ({ stream, id, tenant, reason, parkedAt }: ParkedEntry) => ({
  ...{ stream, id, tenant, reason },
  parked_at: new Date(parkedAt).toISOString(),
});

/** Puts back what is parked of these streams. */
export async function redriveAll(parked: ParkedPorts, streams: readonly string[]): Promise<Redriven> {
  const sums = { moved: 0, stayed: 0, erased: 0 };
  for (const stream of streams) {
    const { moved, stayed, erased } = await parked.redrive(stream);
    sums.moved += moved;
    sums.stayed += stayed;
    sums.erased += erased;
  }
  return sums;
}
