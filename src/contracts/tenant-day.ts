/** Counts are kept by tenant and UTC day. */

/** A tenant has no colon (contracts/environment.ts). @param day number of days since 1970 */
export const tenantDay = (tenant: string, day: number): string => `${tenant}:${day}`;

export function readTenantDay(name: string): { tenant: string; day: number } {
  const colon = name.lastIndexOf(':');
  return { tenant: name.slice(0, colon), day: Number(name.slice(colon + 1)) };
}
