/** Load on one deployment, with a count of the acknowledged answers of each learner. */
import { type Answer, type Skilltrace, SkilltraceError } from '../../src/client/index.js';
import { indices, splitIntoParts } from '../../src/lists.js';
import type { LoadRunner } from '../load/load-runner.js';
import type { Endpoint, LoadPlan, LoadResult } from '../load/plan.js';
import { type LoadRequest, learnerId } from '../load/traffic.js';
import { forEachConcurrently } from './for-each.js';

/** All learners of all runs. */
export const benchPrefix = 'bench-';

export interface Session {
  readonly client: Skilltrace;
  /** Of the learners of this run: `bench-RUN-`. */
  readonly prefix: string;
  /** By learner. */
  readonly acknowledged: Uint32Array;
  /** Answers that the deployment may or may not have counted, by learner. */
  readonly uncertain: Uint32Array;
  /** Records an answer of each learner, because reads of unknown learners fail. */
  createLearners(): Promise<void>;
  load(plan: SessionPlan): Promise<LoadResult>;
}

export type SessionPlan = Pick<
  LoadPlan,
  'traffic' | 'seconds' | 'rate' | 'isBurst' | 'connections' | 'graceMs'
> & {
  readonly generators: number;
  readonly onProgress: (text: string) => void;
};

export interface SessionOptions {
  readonly endpoint: Endpoint;
  readonly client: Skilltrace;
  readonly prefix: string;
  readonly learners: number;
  readonly seed: number;
  readonly runLoad: LoadRunner;
}

const answersPerBatch = 1000;
const parallelRequests = 8;

export function createSession({
  endpoint,
  client,
  prefix,
  learners,
  seed,
  runLoad,
}: SessionOptions): Session {
  const acknowledged = new Uint32Array(learners);
  const uncertain = new Uint32Array(learners);
  let [firstAnswer, loads] = [0, 0];
  const load = async ({ generators, onProgress, ...plan }: SessionPlan): Promise<LoadResult> => {
    // Each load gets other answers.
    const planned = {
      ...{ ...plan, endpoint, firstAnswer, failsFast: false, seed: seed + 1000 * loads++ },
      traffic: { ...plan.traffic, prefix, skillPrefix: benchPrefix },
    };
    const result = await runLoad(planned, Math.min(generators, plan.connections), ({ responses, errors }) =>
      onProgress(`${responses} responses, ${errors} errors`),
    );
    firstAnswer += result.numbersUsed;
    for (const [learner, count] of result.acknowledged.entries()) add(acknowledged, learner, count);
    onProgress(`repeating ${result.unsettled.length} failed requests`);
    await forEachConcurrently(result.unsettled, parallelRequests, settle);
    return result;
  };
  const settle = async (request: LoadRequest): Promise<void> => {
    const isCounted = await repeatRequest(client, request);
    request.learners.forEach((learner, i) => {
      const counted = isCounted(i);
      if (counted !== false) add(counted ? acknowledged : uncertain, learner, 1);
    });
  };
  const createLearners = async (): Promise<void> => {
    const create = async (part: readonly number[]): Promise<void> => {
      const { results } = await client.trackAnswers(
        part.map((learner) => createFirstAnswer(learner, prefix)),
      );
      for (const { index, status } of results)
        if (status === 200) add(acknowledged, part[index] as number, 1);
    };
    await forEachConcurrently(splitIntoParts(indices(learners), answersPerBatch), parallelRequests, create);
  };
  return { client, prefix, acknowledged, uncertain, createLearners, load };
}

const createFirstAnswer = (learner: number, prefix: string): Answer => ({
  user_id: learnerId(learner, prefix),
  skill_id: `${benchPrefix}skill-0`,
  is_correct: true,
  event_id: `${prefix}first`,
});

function add(counts: Uint32Array, learner: number, count: number): void {
  counts[learner] = (counts[learner] as number) + count;
}

/** @returns whether the i-th answer is counted; null if unknown */
async function repeatRequest(
  client: Skilltrace,
  { body }: LoadRequest,
): Promise<(i: number) => boolean | null> {
  const sent = JSON.parse(body as string) as Answer & { readonly events?: readonly Answer[] };
  const answers = sent.events ?? [sent];
  if (answers[0]?.event_id === undefined) return () => null;
  try {
    const { results } = await client.trackAnswers(answers);
    return (i) => results[i]?.status === 200;
  } catch (error) {
    if (!(error instanceof SkilltraceError)) throw error;
    return () => (error.retryable ? null : false);
  }
}

/** Learners that may have answers. */
export const listUsedLearners = ({ acknowledged, uncertain, prefix }: Session): string[] =>
  Array.from(acknowledged, (count, learner) =>
    count + (uncertain[learner] as number) > 0 ? learnerId(learner, prefix) : null,
  ).filter((id) => id !== null);
