/** Checks of key and tenant before a run, and the erasure of learners after it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { iterateEntries } from '../../src/client/call-builder.js';
import { type OwnKey, type Skilltrace, SkilltraceError } from '../../src/client/index.js';
import { StartError } from '../../src/lifecycle.js';
import { forEachConcurrently } from '../load/for-each.js';
import { benchPrefix } from './session.js';

const pageLimit = 1000;
const maxLagPolls = 30;
const pollMs = 1000;
/** Twice the usual time. */
const computeMaxMinutes = (learners: number): number => 10 + Math.ceil(learners / 1000);
const parallelErasures = 16;

interface Requirements {
  readonly needsErasure: boolean;
  /** Requests per second; null for a closed loop, Infinity for a search. */
  readonly rate: number | null;
}

/** @returns a warning, or null @throws StartError if the key does not allow the run */
export function checkKey(
  { scopes, requests_per_minute: quota, tenant }: OwnKey,
  { needsErasure, rate }: Requirements,
): string | null {
  const needed = ['read', 'write', ...(needsErasure ? ['admin'] : [])] as const;
  const missing = needed.filter((scope) => !scopes.some((one) => one === scope));
  const createKey = `npm run keys -- create --tenant ${tenant} --unlimited`;
  if (missing.length > 0)
    throw new StartError(
      `The key lacks the scope ${missing.join(' and ')}; create another key: ${createKey}`,
    );
  if (quota === null) return null;
  const advice = `The key allows ${quota} requests per minute. Create a key with a higher quota: ${createKey}`;
  if (rate !== null && rate * 60 > quota) throw new StartError(`This load exceeds the quota. ${advice}`);
  return rate === null ? advice : null;
}

/** Stricter than the prefix: the tenant may have learners such as `bench-press`. */
const benchLearner = /^bench-[a-z\d]+-learner-\d+$/;

const listLearners = (client: Skilltrace, query: { readonly prefix?: string }) =>
  iterateEntries(
    (cursor) => client.learners({ ...query, limit: pageLimit, cursor }),
    ({ learners }) => learners,
  );

/** @throws StartError if the tenant has learners that no load test created */
export async function requireBenchTenant(client: Skilltrace, tenant: string): Promise<void> {
  for await (const { user_id } of listLearners(client, {})) {
    if (benchLearner.test(user_id)) continue;
    throw new StartError(
      `Tenant ${tenant} has learners that no load test created (${JSON.stringify(user_id)}). Use a key of a tenant for load tests, or pass --yes-this-tenant`,
    );
  }
}

/** Includes the newest learners: waits until ClickHouse has all answers, at most 30 s. */
export async function listBenchLearners(client: Skilltrace): Promise<string[]> {
  for (let polls = 0; polls < maxLagPolls; polls++) {
    const { source_lag_seconds } = await client.learners({ limit: 1, prefix: benchPrefix });
    if (source_lag_seconds === 0) break;
    await sleep(pollMs);
  }
  const found: string[] = [];
  for await (const { user_id } of listLearners(client, { prefix: benchPrefix }))
    if (benchLearner.test(user_id)) found.push(user_id);
  return found;
}

/** @returns the number of erasures that were started */
export async function startErasures(
  client: Skilltrace,
  userIds: readonly string[],
  onProgress: (erased: number) => void,
): Promise<Set<string>> {
  const started = new Set<string>();
  await forEachConcurrently(userIds, parallelErasures, async (userId) => {
    try {
      started.add((await client.eraseLearner(userId)).erasure_id);
    } catch (error) {
      if (!(error instanceof SkilltraceError) || error.code !== 'USER_NOT_FOUND') throw error;
    }
    onProgress(started.size);
  });
  return started;
}

/** Resolves when the deployment has removed all rows. @throws StartError if it takes too long */
export async function waitUntilErased(
  client: Skilltrace,
  erasureIds: ReadonlySet<string>,
  onProgress: (left: number) => void,
): Promise<void> {
  const maxMinutes = computeMaxMinutes(erasureIds.size);
  const deadline = performance.now() + 60_000 * maxMinutes;
  for (let left = erasureIds.size; left > 0; left = await countOpenErasures(client, erasureIds)) {
    onProgress(left);
    if (performance.now() > deadline)
      throw new StartError(`${left} learners are not erased after ${maxMinutes} minutes`);
    await sleep(pollMs);
  }
}

/** The list begins with the newest ones, so the wanted erasures are in the first pages. */
async function countOpenErasures(client: Skilltrace, wanted: ReadonlySet<string>): Promise<number> {
  const missing = new Set(wanted);
  let open = 0;
  const listed = iterateEntries(
    (cursor) => client.erasures({ limit: pageLimit, cursor }),
    ({ erasures }) => erasures,
  );
  for await (const { erasure_id, status } of listed) {
    if (missing.delete(erasure_id) && status !== 'done') open += 1;
    if (missing.size === 0) break;
  }
  return open + missing.size;
}
