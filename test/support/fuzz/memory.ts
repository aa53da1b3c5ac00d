/** What answers told and later requests ask for: ids and cursors that nobody can make up. */
import type { Answer } from '../http/http.js';
import type { Request } from './requests.js';

/** Stand in paths for the newest of their kind; where there is none yet, they are ids and cursors as bad as any. */
export const toldErasure = '~erasure~';
export const toldWebhook = '~webhook~';
export const toldMessage = '~message~';
export const toldKey = '~key~';
export const toldCursor = '~cursor~';
/** With its learner, whose segment of the path changes too. */
export const toldEvent = '~event~';

export interface Memory {
  note(request: Request, answer: Answer): void;
  /** The path as it is sent. */
  fill(path: string): string;
}

interface Listed {
  readonly user_id: string;
  readonly attempts: readonly { readonly event_id: string | null }[];
}

export function createMemory(): Memory {
  let [erasure, webhook, message, made] = [toldErasure, toldWebhook, toldMessage, toldKey];
  let event: string | null = null;
  const cursors = new Map<string, string>();
  return {
    note: ({ path, key }, { status, text }) => {
      if (status >= 300 || !text.startsWith('{"success":true')) return;
      const { data } = JSON.parse(text);
      if (typeof data.erasure_id === 'string') erasure = data.erasure_id;
      if (typeof data.webhook_id === 'string' && key === 'wild') webhook = data.webhook_id;
      // Keys that were made here: none of those that the requests come with is revoked.
      if (typeof data.key === 'string') made = data.key_id;
      if (typeof data.message_id === 'string') message = data.message_id;
      if (typeof data.next_cursor === 'string') cursors.set(listOf(path), data.next_cursor);
      // In the tenant whose books are kept nothing is taken back.
      if (Array.isArray(data.attempts) && key !== 'ledger') event = pathOfEvent(data) ?? event;
    },
    fill: (path) =>
      path
        .replace(toldErasure, erasure)
        .replace(toldWebhook, webhook)
        .replace(toldMessage, message)
        .replace(toldKey, made)
        .replace(toldCursor, cursors.get(listOf(path)) ?? toldCursor)
        .replace(/learners\/[^/]*\/attempts\/~event~/, (whole) => event ?? whole),
  };
}

const listOf = (path: string): string => path.split('?')[0] as string;

function pathOfEvent({ user_id, attempts }: Listed): string | null {
  const id = attempts.find(({ event_id }) => event_id !== null)?.event_id ?? null;
  return id === null ? null : `learners/${encodeURIComponent(user_id)}/attempts/${encodeURIComponent(id)}`;
}
