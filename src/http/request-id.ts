/** The id by which a request is found in the log. */
import { randomBytes } from 'node:crypto';

const shape = /^[A-Za-z0-9._:-]{1,128}$/;
const prefix = randomBytes(6).toString('hex');
let counter = 0;

/** The caller's request id where it is a plain one, else one of ours: unique, and cheap to make. */
export function requestIdOf(sent: string | null): string {
  if (sent !== null && shape.test(sent)) return sent;
  counter += 1;
  return `${prefix}-${counter.toString(36)}`;
}
