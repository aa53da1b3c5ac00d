/** Prepared before a load, so that all targets of a scenario get the same bytes. */
import { indices } from '../../src/lists.js';
import { type AnswerDraw, createDraws, type LearnerOrder } from './draws.js';

export interface Traffic {
  readonly order: LearnerOrder;
  readonly learners: number;
  readonly skills: number;
  /** 1 means `skill_id`, more mean `skill_ids`. */
  readonly skillsPerAnswer: number;
  /** Answers per request; 1 means POST track-answer. */
  readonly batch: number;
  /** `all`: also item, confidence and time; `no ids`: for learners above the daily limit of event ids. */
  readonly fields: 'usual' | 'all' | 'no ids';
  /** `mixed`: 90 % answers, 8 % mastery and predictions, 2 % velocity. */
  readonly kind: 'answers' | 'mixed' | 'predictions';
  readonly newLearners: boolean;
}

export const usualTraffic: Traffic = {
  order: 'random',
  learners: 10_000,
  skills: 50,
  skillsPerAnswer: 1,
  batch: 1,
  fields: 'usual',
  kind: 'answers',
  newLearners: false,
};

export interface PreparedRequest {
  readonly bytes: Buffer;
  readonly answers: number;
}

export const numberPlaceholder = '############';

export const learnerId = (learner: number): string => `learner-${learner}`;
export const newLearnerId = (answer: number): string =>
  `new-${`${answer}`.padStart(numberPlaceholder.length, '0')}`;
const skillId = (skill: number): string => `skill-${skill}`;
const upTo = (end: number): number => Math.floor(Math.random() * end);

function drawEvent({ learner, skill }: AnswerDraw, traffic: Traffic): object {
  const { fields, newLearners, skills, skillsPerAnswer } = traffic;
  return {
    user_id: newLearners ? `new-${numberPlaceholder}` : learnerId(learner),
    ...(skillsPerAnswer === 1
      ? { skill_id: skillId(skill) }
      : { skill_ids: indices(skillsPerAnswer).map((i) => skillId((skill + i) % skills)) }),
    is_correct: Math.random() < 0.6,
    time_spent_seconds: 5 + upTo(115),
    question_difficulty: (upTo(61) - 30) / 10,
    ...(fields !== 'no ids' && { event_id: `event-${numberPlaceholder}` }),
    ...(fields === 'all' && {
      item_id: `item-${skill}-${upTo(20)}`,
      confidence_score: 1 + upTo(5),
      occurred_at: new Date(Date.now() - upTo(60_000)).toISOString(),
    }),
  };
}

const buildPost = (path: string, key: string, body: string): Buffer =>
  Buffer.from(
    `POST /api/v1/${path} HTTP/1.1\r\nHost: bench\r\nX-API-Key: ${key}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    'latin1',
  );

const buildGet = (path: string, key: string): Buffer =>
  Buffer.from(`GET /api/v1/${path} HTTP/1.1\r\nHost: bench\r\nX-API-Key: ${key}\r\n\r\n`, 'latin1');

function prepareRequest(traffic: Traffic, key: string, draw: () => AnswerDraw): PreparedRequest {
  const read = drawReadPath(traffic.kind, draw);
  if (read !== null) return { bytes: buildGet(read, key), answers: 0 };
  const events = Array.from({ length: traffic.batch }, () => drawEvent(draw(), traffic));
  const single = traffic.batch === 1;
  const body = JSON.stringify(single ? events[0] : { events });
  return { bytes: buildPost(single ? 'track-answer' : 'track-answers', key, body), answers: traffic.batch };
}

function drawReadPath(kind: Traffic['kind'], draw: () => AnswerDraw): string | null {
  if (kind === 'answers') return null;
  const user = learnerId(draw().learner);
  if (kind === 'predictions') return `predictions/${user}`;
  const share = Math.random();
  if (share < 0.9) return null;
  if (share < 0.98) return share < 0.94 ? `mastery/${user}` : `predictions/${user}`;
  return `velocity/${user}`;
}

const singleRequests = 50_000;
const batchedAnswers = 200_000;
/** Otherwise a request could be refilled while a connection still sends it. */
const minRequests = 300;

export function prepareRequests(traffic: Traffic, key: string): PreparedRequest[] {
  const draw = createDraws(traffic.order, traffic.learners, traffic.skills);
  const length = traffic.batch === 1 ? singleRequests : Math.max(minRequests, batchedAnswers / traffic.batch);
  return Array.from({ length }, () => prepareRequest(traffic, key, draw));
}
