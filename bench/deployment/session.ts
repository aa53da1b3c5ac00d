/** Load on one deployment, with a count of the acknowledged answers of each learner. */
import { type Answer, type Skilltrace, SkilltraceError } from '../../src/client/index.js';
import { indices, splitIntoParts } from '../../src/lists.js';
import { forEachConcurrently } from '../load/for-each.js';
import type { LoadRunner } from '../load/load-runner.js';
import type { Endpoint, LoadPlan, LoadResult } from '../load/plan.js';
import { type LoadRequest, learnerId } from '../load/traffic.js';

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

export type SessionPlan = Omit<LoadPlan, 'endpoint' | 'seed' | 'firstAnswer' | 'failsFast'> & {
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

export function createSession(options: SessionOptions): Session {
  const { endpoint, client, prefix, learners, seed, runLoad } = options;
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
    onProgress('repeating requests without a clear response');
    await settle(result.unsettled.flatMap(listAnswers));
    return result;
  };
  const settle = async (answers: readonly SentAnswer[]): Promise<void> => {
    const setOutcome = ({ learner }: SentAnswer, isCounted: boolean | null): void => {
      if (isCounted !== false) add(isCounted ? acknowledged : uncertain, learner, 1);
    };
    // Without an id, a repeated answer would count twice.
    const [first] = answers;
    let isRepeatable = first?.answer.event_id !== undefined;
    for (const part of splitIntoParts(answers, answersPerBatch)) {
      const outcomes = isRepeatable ? await repeatAnswers(client, part) : null;
      for (const [i, sent] of part.entries()) setOutcome(sent, outcomes?.[i] ?? null);
      isRepeatable &&= outcomes !== null;
    }
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

interface SentAnswer {
  readonly answer: Answer;
  readonly learner: number;
}

function listAnswers({ body, learners }: LoadRequest): SentAnswer[] {
  const sent: Answer & { readonly events?: readonly Answer[] } = JSON.parse(body as string);
  return (sent.events ?? [sent]).map((answer, i) => ({ answer, learner: learners[i] as number }));
}

/** @returns whether each answer is counted, null if unknown; null if the call fails */
async function repeatAnswers(
  client: Skilltrace,
  sent: readonly SentAnswer[],
): Promise<(boolean | null)[] | null> {
  try {
    const { results } = await client.trackAnswers(sent.map(({ answer }) => answer));
    return results.map(({ status }) => (status >= 500 || status === 409 ? null : status === 200));
  } catch (error) {
    if (!(error instanceof SkilltraceError)) throw error;
    return null;
  }
}

/** Learners that may have answers. */
export const listUsedLearners = ({ acknowledged, uncertain, prefix }: Session): string[] =>
  Array.from(acknowledged, (count, learner) =>
    count + (uncertain[learner] as number) > 0 ? learnerId(learner, prefix) : null,
  ).filter((id) => id !== null);
