/** Programs in TypeScript that use the client as a package, under the strictest settings. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { casesOf } from '../runner/long-form.js';
import { root } from '../runner/root.js';
import { receiverOfDocs } from '../servers/receiver-of-docs.js';

const source = `
import { Skilltrace, SkilltraceError, type Answer, type AnswerStore, type Prediction, type StoredAnswer, type WebhookMessage } from 'skilltrace/client';

const unsent: StoredAnswer[] = [];
const store: AnswerStore = {
  load: async () => unsent,
  add: async (answers) => void unsent.push(...answers),
  remove: async () => undefined,
};

export async function use(confidence: number | undefined, signal: AbortSignal): Promise<number> {
  await using client = new Skilltrace({ baseUrl: '/analytics', apiKey: async () => 'key', queue: { lingerMs: 100 }, store });
  const answer: Answer = { user_id: 'u', skill_id: 's', is_correct: true, confidence_score: confidence };
  const id: string = await client.track(answer);
  await client.track({ user_id: 'u', skill_ids: ['s', 't'], is_correct: false });
  const { items } = await client.nextItems('u', { items: [{ skill_ids: ['s', 't'] }, { skill_id: 's', item_id: 'i' }] });
  const weakest: string | undefined = items[0]?.skills?.find(({ mastery }) => mastery < 0.5)?.skill_id;
  await client.flush({ signal, timeoutMs: 1000 });
  const prediction: Prediction = await client.predictions('u', { days: 60, signal });
  const inSixtyDays: number = prediction.predicted_total_in_60_days ?? 0;
  const goal = await client.goal('u');
  await client.setGoal('u', { target_score: 1200 }, { ifMatch: goal.etag });
  await client.setSkill('s', { ...(await client.skill('s')), weight: 2 });
  for (const result of (await client.trackAnswers([answer])).results)
    if ('error' in result) console.log(result.error.code, result.error.details?.[0]?.path);
    else console.log(weakest, result.data.skills?.[0]?.mastery_after);
  for await (const attempt of client.allAttempts('u')) console.log(attempt.learner_seq, id);
  const { secret } = await client.createWebhook({ url: 'https://platform.example/hooks', event_types: ['*'] });
  for await (const { webhook_id } of client.allWebhooks())
    for await (const { status } of client.allDeliveries(webhook_id, { limit: 10 })) console.log(status, secret);
  const mapping = await client.xapiMapping();
  await client.setXapiMapping({ ...mapping, unmapped: 'ignore' }, { ifMatch: mapping.etag });
  for await (const line of client.exportLearner('u', { signal })) console.log(line.type);
  try {
    await client.mastery('u');
  } catch (error) {
    if (error instanceof SkilltraceError && error.code === 'USER_NOT_FOUND') return error.retryAfterMs ?? error.status;
  }
  // @ts-expect-error an answer has a learner
  await client.track({ skill_id: 's', is_correct: true });
  // @ts-expect-error an answer has a skill
  await client.track({ user_id: 'u', is_correct: true });
  // @ts-expect-error an answer has either field
  await client.track({ user_id: 'u', skill_id: 's', skill_ids: ['s'], is_correct: true });
  // @ts-expect-error no code of this name
  if (new SkilltraceError('TIMEOUT', '').code === 'NO_SUCH_CODE') return 0;
  return inSixtyDays;
}

export function scoreOf({ type, data }: WebhookMessage): number | null {
  // @ts-expect-error only goal events have a score
  if (type === 'mastery.reached') return data.target_score;
  return type === 'goal.reached' ? data.target_score : null;
}
`;

const settings = {
  target: 'es2022',
  lib: ['es2022', 'dom', 'dom.iterable'],
  types: [],
  skipLibCheck: false,
  noEmit: true,
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  noPropertyAccessFromIndexSignature: false,
};

/** How TypeScript resolves a package. */
const resolutions = [
  { module: 'node16', moduleResolution: 'node16' },
  { module: 'esnext', moduleResolution: 'bundler' },
];

/** Compiles the program in a folder with the package in node_modules; the long form tries each resolution. */
export function checkConsumer(dir: string): void {
  for (const resolution of casesOf(resolutions, resolutions.length)) compile(dir, source, resolution);
}

/** Compiles the receiver of docs/webhooks.md, with the packages that it uses. */
export function checkReceiver(dir: string): void {
  const modules = join(root, 'node_modules');
  symlinkSync(join(modules, 'standardwebhooks'), join(dir, 'node_modules/standardwebhooks'));
  const options = { types: ['node'], typeRoots: [join(modules, '@types')] };
  compile(dir, receiverOfDocs(), { ...resolutions[0], ...options });
}

function compile(dir: string, program: string, options: object): void {
  const tsconfig = { compilerOptions: { ...settings, ...options }, files: ['program.ts'] };
  writeFileSync(join(dir, 'program.ts'), program);
  writeFileSync(join(dir, 'tsconfig.json'), JSON.stringify(tsconfig));
  const tsc = join(root, 'node_modules/.bin/tsc');
  const { status, stdout } = spawnSync(tsc, ['-p', dir, '--pretty', 'false'], { encoding: 'utf8' });
  assert.equal(status, 0, `${JSON.stringify(options)}: ${stdout}`);
}
