import { type Calendar, getCalendar } from '../../domain/base/calendar.js';
import type { ModelPorts } from './read-skills.js';

export interface TenantCalendars {
  /** Of the tenant's time zone. */
  readonly calendarOf: (tenant: string) => Promise<Calendar>;
}

export const createTenantCalendars = (models: ModelPorts['models']): TenantCalendars => ({
  calendarOf: async (tenant) => getCalendar((await models.current(tenant)).catalogue.timeZone),
});
