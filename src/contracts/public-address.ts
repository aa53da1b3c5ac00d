/** placeholder until merge */
export const isPublicAddress = (address: string): boolean => !address.startsWith('127.') && address !== '::1';
