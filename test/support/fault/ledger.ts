/** The answers that test clients have sent, with the results that they received. */
import type { Answer } from '../../../src/client/index.js';

/** One skill, or several. */
type EventSkills =
  | { readonly skill_id: string; readonly skill_ids?: never }
  | { readonly skill_id?: never; readonly skill_ids: readonly string[] };

export type AnswerEvent = Omit<Answer, 'skill_id' | 'skill_ids' | 'event_id'> &
  EventSkills & { readonly event_id: string };

export const skillsOf = ({ skill_id, skill_ids }: AnswerEvent): readonly string[] => skill_ids ?? [skill_id];

export interface Entry {
  readonly tenant: string;
  readonly event: AnswerEvent;
  /** JSON of the first confirmation; null: not confirmed. */
  first: string | null;
  /** Confirmations that were not replays; must be 1. */
  counted: number;
  /** A later result that differs from the first. */
  changed: string | null;
  retracted: boolean;
}

export interface Ledger {
  readonly entries: Entry[];
  /** Responses that the contract does not allow. */
  readonly invalid: string[];
  /** Rejected requests and lost connections. */
  retried: number;
  /** Responses with status 500. */
  failed: number;
}

export const createEntry = (tenant: string, event: AnswerEvent): Entry => ({
  ...{ tenant, event, first: null, counted: 0, changed: null, retracted: false },
});

export function confirm(entry: Entry, data: unknown, replayed: boolean): void {
  const text = JSON.stringify(data);
  if (!replayed) entry.counted += 1;
  entry.first ??= text;
  if (entry.first !== text) entry.changed = text;
}
