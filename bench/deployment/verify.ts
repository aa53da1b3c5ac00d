/** Compares the answers of the deployment with the acknowledged ones. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describeConnectionError } from '../../src/connection-problem.js';
import { StartError } from '../../src/lifecycle.js';
import { computeSum, splitIntoParts } from '../../src/lists.js';
import { forEachConcurrently } from '../load/for-each.js';
import { learnerId } from '../load/traffic.js';
import { queryAsAnalyst } from '../scenarios/clickhouse-school.js';
import { benchPrefix, listUsedLearners, type Session } from './session.js';

export interface Verification {
  /** Answers that the deployment confirmed. */
  readonly acknowledged: number;
  /** Answers without a clear response: they may be counted or not. */
  readonly uncertain: number;
  /** Answers of the learners, read through the API. */
  readonly found: number;
  /** Learners with other counts than acknowledged. */
  readonly differences: number;
  /** Rows in ClickHouse; null without an analyst account. */
  readonly rows: number | null;
  /** Rows with the id of another row; null without an analyst account, or without event ids. */
  readonly duplicates: number | null;
}

const learnersPerRequest = 100;
const parallelRequests = 4;
const maxRowWaitMs = 120_000;
const pollMs = 1000;

export async function verifyAnswers(
  session: Session,
  analystUrl: string | null,
  showProgress: (text: string) => void,
): Promise<Verification> {
  const showRead = (read: number): void => showProgress(`verifying: ${read} learners`);
  const found = await readAttempts(session, showRead);
  const { acknowledged, uncertain, prefix } = session;
  let differences = 0;
  acknowledged.forEach((count, learner) => {
    const attempts = found.get(learnerId(learner, prefix)) ?? 0;
    if (attempts < count || attempts > count + (uncertain[learner] as number)) differences += 1;
  });
  const sum = computeSum([...found.values()]);
  const rows = analystUrl === null ? null : await waitForRows(analystUrl, prefix, sum);
  return {
    acknowledged: computeSum([...acknowledged]),
    uncertain: computeSum([...uncertain]),
    found: sum,
    differences,
    ...(rows ?? { rows: null, duplicates: null }),
  };
}

/** Attempts by learner. */
async function readAttempts(session: Session, onProgress: (read: number) => void) {
  const found = new Map<string, number>();
  const parts = splitIntoParts(listUsedLearners(session), learnersPerRequest);
  await forEachConcurrently(parts, parallelRequests, async (user_ids) => {
    const { results } = await session.client.classMastery({ user_ids });
    for (const result of results)
      found.set(result.user_id, result.status === 200 ? result.data.total_attempts : 0);
    onProgress(found.size);
  });
  return found;
}

/** Before the load, because the results would be lost. @throws StartError */
export async function checkAnalyst(analystUrl: string): Promise<void> {
  try {
    await waitForRows(analystUrl, benchPrefix, 0);
  } catch (cause) {
    if (cause instanceof StartError) throw cause;
    throw new StartError(`--analyst-url: ${describeConnectionError(cause).text}`, { cause });
  }
}

/** Polls for up to two minutes, because rows arrive after the responses. */
async function waitForRows(analystUrl: string, prefix: string, expected: number) {
  const query = `SELECT count(), countIf(event_id != '') - uniqExactIf((user_id, event_id), event_id != '')
    FROM attempts WHERE startsWith(user_id, {prefix:String}) FORMAT TSV`;
  const database = new URL(analystUrl).pathname.slice(1);
  const settings = { param_prefix: prefix, ...(database !== '' && { database }) };
  for (const deadline = performance.now() + maxRowWaitMs; ; await sleep(pollMs)) {
    const text = await queryAsAnalyst(analystUrl, query, settings);
    const [rows = 0, duplicates = 0] = text.split('\t').map(Number);
    if (rows >= expected || performance.now() > deadline) return { rows, duplicates };
  }
}

/** @returns the first difference in one line, or null */
export function findDifference({ differences, found, rows, duplicates }: Verification): string | null {
  if (differences > 0) return `${differences} learners have other counts than acknowledged`;
  if (rows !== null && rows !== found)
    return `ClickHouse has ${rows} rows, but the learners have ${found} answers`;
  return duplicates === null || duplicates === 0 ? null : `ClickHouse has ${duplicates} duplicate rows`;
}
