/** Seeded, so that all targets of a round get the same requests. */
import { indices } from '../../src/lists.js';
import { createSeededRandom } from '../../src/seeded-random.js';
import { type AnswerDraw, createDraws, type LearnerOrder } from './draws.js';

export interface Traffic {
  readonly order: LearnerOrder;
  readonly learners: number;
  readonly skills: number;
  /** Per skill; 0: answers have no item. */
  readonly items: number;
  /** 1 means `skill_id`, more mean `skill_ids`. */
  readonly skillsPerAnswer: number;
  /** Answers per request; 1 means POST track-answer. */
  readonly batch: number;
  /** Off for learners above the daily limit of event ids. */
  readonly eventIds: boolean;
  /**
   * `mixed`: 90 % answers, 8 % mastery and predictions, 2 % velocity. `class`: mastery and predictions of 30
   * learners, in turns.
   */
  readonly kind: 'answers' | 'mixed' | 'predictions' | 'class';
  /** Of learner and event ids. */
  readonly prefix: string;
  /** Of skill and item ids. */
  readonly skillPrefix: string;
}

export const usualTraffic: Traffic = {
  order: 'uniform',
  learners: 10_000,
  skills: 50,
  items: 0,
  skillsPerAnswer: 1,
  batch: 1,
  eventIds: true,
  kind: 'answers',
  prefix: '',
  skillPrefix: '',
};

export type Operation = 'answer' | 'batch' | 'mastery' | 'predictions' | 'velocity';

export interface LoadRequest {
  readonly operation: Operation;
  /** From /api/v1/ on. */
  readonly path: string;
  /** ASCII. Null for GET. */
  readonly body: string | null;
  readonly answers: number;
  /** The learner of each answer. */
  readonly learners: readonly number[];
}

export const learnerId = (learner: number, prefix = ''): string => `${prefix}learner-${learner}`;

const classSize = 30;

/** @param nextNumber returns a number that no other answer has */
export function createRequestSource(
  traffic: Traffic,
  seed: number,
  nextNumber: () => number,
): () => LoadRequest {
  const random = createSeededRandom(seed);
  const draw = createDraws(traffic.order, traffic.learners, traffic.skills, random);
  const upTo = (end: number): number => Math.floor(random() * end);
  const createSingle = (): LoadRequest => {
    const drawn = draw();
    const body = drawEvent(traffic, drawn, nextNumber(), upTo);
    return { operation: 'answer', path: 'track-answer', body, answers: 1, learners: [drawn.learner] };
  };
  const createBatch = (): LoadRequest => {
    const draws = Array.from({ length: traffic.batch }, draw);
    const body = `{"events":[${draws.map((drawn) => drawEvent(traffic, drawn, nextNumber(), upTo))}]}`;
    const learners = draws.map(({ learner }) => learner);
    return { operation: 'batch', path: 'track-answers', body, answers: traffic.batch, learners };
  };
  const createPost = traffic.batch === 1 ? createSingle : createBatch;
  let isPredictions = true;
  const createClassRequest = (): LoadRequest => {
    isPredictions = !isPredictions;
    const first = classSize * upTo(Math.ceil(traffic.learners / classSize));
    const size = Math.min(classSize, traffic.learners - first);
    const body = JSON.stringify({ user_ids: indices(size).map((i) => learnerId(first + i, traffic.prefix)) });
    const operation = isPredictions ? 'predictions' : 'mastery';
    return { operation, path: operation, body, ...noAnswers };
  };
  if (traffic.kind === 'answers') return createPost;
  if (traffic.kind === 'class') return createClassRequest;
  const getOne = (operation: 'mastery' | 'predictions' | 'velocity'): LoadRequest => ({
    operation,
    path: `${operation}/${learnerId(draw().learner, traffic.prefix)}`,
    body: null,
    ...noAnswers,
  });
  if (traffic.kind === 'predictions') return () => getOne('predictions');
  return () => {
    const share = random();
    if (share < 0.9) return createPost();
    if (share < 0.98) return getOne(share < 0.94 ? 'mastery' : 'predictions');
    return getOne('velocity');
  };
}

const noAnswers = { answers: 0, learners: [] };

/** As text, because V8 formats fractions slowly. */
const difficulties = indices(61).map((i) => `${(i - 30) / 10}`);

/** As JSON. JSON.stringify would take three times as long. */
function drawEvent(
  traffic: Traffic,
  { learner, skill }: AnswerDraw,
  number: number,
  upTo: (end: number) => number,
): string {
  const { prefix, skillPrefix, skills, skillsPerAnswer, items, eventIds } = traffic;
  const skillField =
    skillsPerAnswer === 1
      ? `"skill_id":"${skillPrefix}skill-${skill}"`
      : `"skill_ids":[${indices(skillsPerAnswer).map((i) => `"${skillPrefix}skill-${(skill + i) % skills}"`)}]`;
  const eventField = eventIds ? `,"event_id":"${prefix}event-${number}"` : '';
  const itemField = items > 0 ? `,"item_id":"${skillPrefix}item-${skill}-${upTo(items)}"` : '';
  return `{"user_id":"${learnerId(learner, prefix)}",${skillField},"is_correct":${upTo(10) < 6},"time_spent_seconds":${5 + upTo(115)},"question_difficulty":${difficulties[upTo(61)]}${eventField}${itemField}}`;
}
