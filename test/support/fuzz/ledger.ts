/** What a test was told of its answers, and what that makes of each learner's skill. */
import { gunzipSync } from 'node:zlib';
import type { Answer } from '../http/http.js';
import type { Content } from './bodies.js';
import type { Request } from './requests.js';

/** Confirmed answers of one learner on one skill. */
export interface Tally {
  answers: number;
  correct: number;
}

interface SentEvent {
  readonly user_id: string;
  readonly skill_id: string;
  readonly is_correct: boolean;
}

interface Result {
  readonly status: number;
  readonly replayed?: true;
}

/** Of one tenant. */
export interface Ledger {
  /** @param answer null: none came */
  note(request: Request, answer: Answer | null): void;
  /** By `nameOfTally`. */
  readonly tallies: ReadonlyMap<string, Tally>;
  /** Events that may have been counted without anybody being told: the most that there can be. */
  unsure(): number;
}

/** Ids hold no line feed. */
export const nameOfTally = (userId: string, skillId: string): string => `${userId}\n${skillId}`;

/** Events in a generated batch, at most. */
export const mostEvents = 8;

export function createLedger(): Ledger {
  const tallies = new Map<string, Tally>();
  let unsure = 0;
  const confirm = ({ user_id, skill_id, is_correct }: SentEvent): void => {
    const name = nameOfTally(user_id, skill_id);
    const tally = tallies.get(name) ?? { answers: 0, correct: 0 };
    tally.answers += 1;
    if (is_correct) tally.correct += 1;
    tallies.set(name, tally);
  };
  const noteAll = ({ content, path }: Request, answer: Answer): void => {
    const events = eventsOf(content as Content, path);
    resultsOf(answer).forEach(({ status, replayed }, i) => {
      if (status >= 500) unsure += 1;
      if (status === 200 && !replayed) confirm(events[i] as SentEvent);
    });
  };
  return {
    tallies,
    unsure: () => unsure,
    note: (request, answer) => {
      if (!tracks(request)) return;
      if (answer === null || answer.status >= 500) unsure += mostEvents;
      else if (answer.status < 300) noteAll(request, answer);
    },
  };
}

const tracks = ({ method, path, content }: Request): boolean =>
  method === 'POST' && content !== null && /^\/api\/v1\/track-answers?(\?|$)/.test(path);

function resultsOf({ headers, text }: Answer): readonly Result[] {
  const { data } = JSON.parse(text);
  if (data.results !== undefined) return data.results;
  return [headers['idempotent-replayed'] === 'true' ? { status: 200, replayed: true } : { status: 200 }];
}

/** The events of a body, as the service reads it; an answer says which of them are events. */
function eventsOf({ bytes, type, encoding }: Content, path: string): readonly unknown[] {
  const body = encoding?.trim().toLowerCase() === 'gzip' ? gunzipSync(bytes) : bytes;
  const text = body.toString('utf8');
  if (type?.includes('ndjson'))
    return text
      .split('\n')
      .filter((line) => line.trim() !== '')
      .map(parsed);
  const value = parsed(text);
  return path.startsWith('/api/v1/track-answers') ? (value as { events: unknown[] }).events : [value];
}

/** Undefined for a line that is no JSON: its result says so. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
