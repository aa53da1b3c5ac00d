/** Counts by tenant and UTC day. A day is its number since 1970. */

export interface DayRange {
  readonly from: number;
  readonly to: number;
}

/** A tenant has no colon (contracts/environment.ts). */
export const tenantDay = (tenant: string, day: number): string => `${tenant}:${day}`;

export function readTenantDay(name: string): { tenant: string; day: number } {
  const colon = name.lastIndexOf(':');
  return { tenant: name.slice(0, colon), day: Number(name.slice(colon + 1)) };
}

/** In the place of a day: all of them together. No answer is of 1970. */
export const allDays = 0;
