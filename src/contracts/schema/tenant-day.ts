/** Days are numbers since 1970, in UTC. */

export interface DayRange {
  readonly from: number;
  readonly to: number;
}

export const tenantDay = (tenant: string, day: number): string => `${tenant}:${day}`;

export function parseTenantDay(name: string): { tenant: string; day: number } {
  const colon = name.lastIndexOf(':');
  return { tenant: name.slice(0, colon), day: Number(name.slice(colon + 1)) };
}

/** No answer is from day 0. */
export const allDays = 0;
