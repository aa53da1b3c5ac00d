import { hashText } from '../redis/binary.js';

/** Bytes under which an item is kept: 64 bits make two of a million items meet with a chance of 3e-8. */
export const itemIdBytes = 8;

/** Hash of an item id, for fields that must be short. Who picks ids that meet spoils his own items alone. */
export const hashItem = (itemId: string): Buffer => hashText(itemId);
