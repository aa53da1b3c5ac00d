/** The answers that the service has confirmed to one tenant, by learner and skill. */
import { gunzipSync } from 'node:zlib';
import type { Answer as SentAnswer } from '../../../src/client/index.js';
import type { Answer } from '../http/http.js';
import { type Content, maxEvents } from './bodies.js';
import type { Request } from './requests.js';

export interface AnswerCount {
  answers: number;
  correct: number;
}

/** Ids contain no line feed. */
export const countKey = (userId: string, skillId: string): string => `${userId}\n${skillId}`;

export function createConfirmedAnswers() {
  const counts = new Map<string, AnswerCount>();
  let maxUnconfirmed = 0;
  const add = ({ user_id, skill_id, skill_ids, is_correct }: SentAnswer): void => {
    for (const skillId of skill_ids ?? [`${skill_id}`]) {
      const key = countKey(user_id, skillId);
      const { answers, correct } = counts.get(key) ?? { answers: 0, correct: 0 };
      counts.set(key, { answers: answers + 1, correct: correct + (is_correct ? 1 : 0) });
    }
  };
  return {
    counts,
    /** Largest number of events that may be counted without a confirmation. */
    maxUnconfirmed: () => maxUnconfirmed,
    /** @param response null: the connection was lost */
    record: ({ method, path, content }: Request, response: Answer | null): void => {
      const isTrack = /^\/api\/v1\/track-answers?(\?|$)/.test(path);
      if (!isTrack || method !== 'POST' || content === null) return;
      if (response === null || response.status >= 500) maxUnconfirmed += maxEvents;
      else if (response.status < 300) {
        const events = parseEvents(content, path);
        parseResults(response).forEach(({ status, replayed }, i) => {
          if (status >= 500) maxUnconfirmed += 1;
          if (status === 200 && !replayed) add(events[i] as SentAnswer);
        });
      }
    },
  };
}

export type ConfirmedAnswers = ReturnType<typeof createConfirmedAnswers>;

function parseResults({ headers, text }: Answer): readonly { status: number; replayed?: boolean }[] {
  const { data } = JSON.parse(text);
  return data.results ?? [{ status: 200, replayed: headers['idempotent-replayed'] === 'true' }];
}

/** Events at the indexes that the service reports. */
function parseEvents({ bytes, type, encoding }: Content, path: string): readonly unknown[] {
  const text = (encoding?.trim().toLowerCase() === 'gzip' ? gunzipSync(bytes) : bytes).toString('utf8');
  if (!path.startsWith('/api/v1/track-answers')) return [JSON.parse(text)];
  if (!type?.includes('ndjson')) return JSON.parse(text).events;
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return lines.map((line) => {
    try {
      return JSON.parse(line);
    } catch {
      return undefined;
    }
  });
}
