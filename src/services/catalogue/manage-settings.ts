import type { Call } from '../../contracts/access/call.js';
import { parseTimeZone } from '../../contracts/catalogue/time-zones.js';
import { parseJson } from '../../contracts/schema/json.js';
import { formatDay, getCalendar, utc } from '../../domain/base/calendar.js';
import { unavailable } from '../../errors.js';
import type { TimeZoneChange, TimeZoneStore } from '../../store/catalogue/time-zones.js';
import type { FactsHistory } from '../../warehouse/reads/facts-history.js';

export interface SettingPorts {
  readonly timeZones: Pick<TimeZoneStore, 'read' | 'set'>;
  readonly history: Pick<FactsHistory, 'listTimeZones' | 'recordTimeZone'>;
  readonly now: () => number;
}

export const readSettings = async ({ timeZones, now }: SettingPorts, { tenant }: Call): Promise<object> =>
  describeSettings(await timeZones.read(tenant), now());

/** Sending the current zone again starts no change. After UNAVAILABLE, the new zone may be active already. */
export async function putSettings({ timeZones, history, now }: SettingPorts, { tenant, body }: Call) {
  const sent = parseJson(body);
  const names = await history.listTimeZones().catch(rejectChange);
  const timeZone = parseTimeZone(sent, names);
  const before = await timeZones.read(tenant);
  const isSame = (before?.timeZone ?? utc) === timeZone;
  const change = isSame ? before : await timeZones.set(tenant, timeZone, now());
  // Rebuilds and views read the zone from ClickHouse.
  if (change !== null) await history.recordTimeZone(tenant, change).catch(rejectChange);
  return describeSettings(change, now());
}

function rejectChange(error: unknown): never {
  throw unavailable('The time zone cannot be stored now; retry later.', error);
}

function describeSettings(change: TimeZoneChange | null, now: number): object {
  const timeZone = change?.timeZone ?? utc;
  const formatTime = (ms: number): string => new Date(ms).toISOString();
  return {
    time_zone: timeZone,
    today: formatDay(getCalendar(timeZone).toDay(now)),
    time_zone_change: change && {
      status: change.doneAt === null ? 'running' : 'done',
      requested_at: formatTime(change.requestedAt),
      done_at: change.doneAt === null ? null : formatTime(change.doneAt),
      learners: change.learners,
    },
  };
}
