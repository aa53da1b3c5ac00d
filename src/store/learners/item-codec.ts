import type { ItemTrace } from '../../domain/tracing/traces.js';
import { toDataView } from '../redis/wire/binary.js';
import { allocateRecord } from './record-bytes.js';

const itemBytes = 11;
/** The last four answers are stored above the 28 bits of `otherSkillAnswers`. */
const lastWrongUnit = 2 ** 28;

export function encodeItem(item: ItemTrace): Buffer {
  const stored = allocateRecord(itemBytes);
  const record = toDataView(stored);
  record.setUint8(0, item.right);
  record.setUint8(1, item.wrong);
  record.setUint8(2, item.wrongRun);
  record.setUint32(
    3,
    item.wrongBits * lastWrongUnit + Math.min(item.otherSkillAnswers, lastWrongUnit - 1),
    true,
  );
  record.setUint32(7, item.at, true);
  return stored;
}

export function decodeItem(stored: Buffer): ItemTrace {
  if (stored.length !== itemBytes)
    throw new Error(`unsupported record of an item with ${stored.length} bytes`);
  const record = toDataView(stored);
  const packed = record.getUint32(3, true);
  return {
    right: record.getUint8(0),
    wrong: record.getUint8(1),
    wrongRun: record.getUint8(2),
    wrongBits: Math.floor(packed / lastWrongUnit),
    otherSkillAnswers: packed % lastWrongUnit,
    at: record.getUint32(7, true),
  };
}
