/** Webhook messages over HTTP, from the event to the receiver. */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { parseLearnerHash, type WebhookType } from '../../src/contracts/webhooks/webhook-events.js';
import { goalConstants } from '../../src/domain/base/score-constants.js';
import { indices } from '../../src/lists.js';
import { messagesPrefix, nextDeliveriesKey } from '../../src/store/redis/keys.js';
import { bigSkills } from '../support/builders/fits.js';
import { erasureDone } from '../support/builders/learner-data.js';
import { madeAnswers, storeAnswers } from '../support/builders/made-answers.js';
import { runCommand } from '../support/commands/command.js';
import { callDescribed } from '../support/http/answer-check.js';
import { described, misfits } from '../support/http/description.js';
import { type Caller, callerOf, type JsonAnswer, outcomeOf } from '../support/http/http.js';
import { readPages } from '../support/http/read-pages.js';
import type { Scoped } from '../support/scope.js';
import { startReceiver, type verified } from '../support/servers/receiver.js';
import { clickhouseOf, keysOf, redisOf, startService } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const service = await startService({ after }, { webhookAllowPrivate: true });
const redis = await redisOf({ after }, service.redisUrl);
const clickhouse = clickhouseOf({ after }, service);
const keys = await keysOf({ after }, service);

const callerIn = async (tenant: string): Promise<Caller> => callerOf(service, await keys.add({ tenant }));

const call = (by: Caller, method: string, path: string, body?: unknown): Promise<JsonAnswer> =>
  callDescribed(by, method, `/api/v1/${path}`, body);

type Payload = ReturnType<typeof verified>;

function assertDescribed(payload: Payload): void {
  const content = described.webhooks[payload.type]?.post?.requestBody?.content['application/json'];
  assert.ok(content, payload.type);
  assert.deepEqual(misfits(content.schema, payload), [], JSON.stringify(payload));
}

/** A new endpoint and its receiver. */
async function createEndpoint(t: Scoped, by: Caller, ...eventTypes: (WebhookType | '*')[]) {
  const receiver = await startReceiver(t);
  const created = await call(by, 'POST', 'webhooks', { url: receiver.url, event_types: eventTypes });
  assert.equal(created.status, 201, created.text);
  const { webhook_id: id, secret } = created.json.data;
  const pathOf = (more = '') => `webhooks/${id}${more}`;
  const deliveries = async (): Promise<JsonAnswer['json'][]> =>
    (await call(by, 'GET', pathOf('/deliveries'))).json.data.deliveries;
  return {
    ...{ id, secret, receiver, received: receiver.received, pathOf, deliveries },
    patch: async (change: object) => (await call(by, 'PATCH', pathOf(), change)).json.data,
    /** @returns the id of the message */
    sendTest: async (): Promise<string> => {
      const answer = await call(by, 'POST', pathOf('/test'));
      assert.equal(answer.status, 202, answer.text);
      return answer.json.data.message_id;
    },
    redeliver: (messageId: string) => call(by, 'POST', pathOf(`/deliveries/${messageId}/redeliver`)),
    /** Waits until this number of messages has been received in total. */
    payloads: async (count: number): Promise<Payload[]> => {
      const payloads = await receiver.payloads(count, secret);
      payloads.forEach(assertDescribed);
      return payloads;
    },
    allDelivered: () =>
      waitFor('confirmed messages', async () =>
        (await deliveries()).every(({ status }) => status === 'delivered'),
      ),
    firstTryFailed: () => waitFor('a failed try', async () => (await deliveries())[0]?.tries === 1),
  };
}

/** Tracks right answers until the skill is mastered. @returns the last result with its event id */
async function reachMastery(by: Caller, userId: string) {
  for (let i = 0; ; i++) {
    const event_id = `${userId}-${i}`;
    const answer = { user_id: userId, skill_id: 'algebra', is_correct: true, event_id };
    const { status, json } = await by.track(answer);
    assert.equal(status, 200);
    if (json.data.mastery_after >= 0.95) return { ...json.data, event_id };
  }
}

const metric = async (name: string): Promise<number> => {
  const { text } = await callerOf(service, null).raw({ method: 'GET', path: '/metrics' });
  const line = text.split('\n').find((one) => one.startsWith(name) && / [\d.e+]+$/.test(one));
  return Number(line?.slice(line.lastIndexOf(' ')));
};
const dispatched = () =>
  waitFor('messages of all events', async () => (await metric('skilltrace_webhook_events_waiting')) === 0);

// Most of the time is waiting for retries and polls.
describe('Webhooks', { concurrency: true }, () => {
  test('send mastery.reached to the subscribed endpoints of the tenant only', async (t) => {
    const [by, other] = [await callerIn('mine'), await callerIn('yours')];
    const subscribed = await createEndpoint(t, by, 'mastery.reached', 'plateau.ended');
    const all = await createEndpoint(t, by, '*');
    const filtered = await createEndpoint(t, by, 'goal.reached', 'model.published');
    const foreign = await createEndpoint(t, other, '*');
    const { mastery_after, total_attempts, correct_attempts, event_id } = await reachMastery(by, 'Zoë 🙂');
    const [payload, ...more] = await subscribed.payloads(1);
    assert.deepEqual([payload?.type, more], ['mastery.reached', []]);
    assert.deepEqual(payload?.data, {
      ...{ user_id: 'Zoë 🙂', skill_id: 'algebra', event_id, occurred_at: payload?.timestamp },
      ...{ mastery_after, total_attempts, correct_attempts },
    });
    assert.deepEqual(await all.payloads(1), [payload]);
    const [message] = subscribed.received;
    assert.equal(all.received[0]?.id, message?.id);
    await dispatched();
    for (const endpoint of [filtered, foreign]) {
      assert.deepEqual(await endpoint.deliveries(), []);
      await endpoint.sendTest();
      const payloads = (await endpoint.payloads(1)).map(({ type, data }) => [type, data]);
      assert.deepEqual(payloads, [['webhook.test', { webhook_id: endpoint.id }]]);
    }
    for (const each of ['GET /deliveries', 'POST /test', `POST /deliveries/${message?.id}/redeliver`]) {
      const [method = '', more] = each.split(' ');
      const foreignCall = await call(other, method, subscribed.pathOf(more));
      assert.equal(outcomeOf(foreignCall), '404 WEBHOOK_NOT_FOUND');
    }
  });

  test('send mastery.reached once for each skill of a question', async (t) => {
    const by = await callerIn('several-skills');
    const endpoint = await createEndpoint(t, by, 'mastery.reached');
    await reachMastery(by, 'ada');
    const listed = { user_id: 'ada', skill_ids: ['algebra', 'geometry', 'sets'], is_correct: true };
    for (const i of indices(8)) await by.track({ ...listed, event_id: `several-${i}` });
    const payloads = await endpoint.payloads(3);
    await dispatched();
    const skills = ['algebra', 'geometry', 'sets'];
    assert.deepEqual(payloads.map(({ data }) => data.skill_id).sort(), skills);
    const [geometry, sets] = payloads.slice(1).map(({ data: { skill_id: _, ...data } }) => data);
    assert.deepEqual(geometry, sets, 'equal histories');
    assert.equal(endpoint.received.length, 3);
  });

  test('list deliveries in pages and send each of them again with the same id', async (t) => {
    const by = await callerIn('listed');
    const endpoint = await createEndpoint(t, by, '*');
    const sent: string[] = [];
    for (const _ of indices(5)) sent.unshift(await endpoint.sendTest());
    await endpoint.payloads(5);
    await endpoint.allDelivered();
    const read = (query: string) => call(by, 'GET', endpoint.pathOf(`/deliveries${query}`));
    const listed = await readPages<{ message_id: string }>(read, 'deliveries', 2);
    const pages = listed.map((page) => page.map(({ message_id }) => message_id));
    assert.deepEqual(pages, [sent.slice(0, 2), sent.slice(2, 4), sent.slice(4)]);
    const fields = { type: 'webhook.test', status: 'delivered', tries: 1 };
    const last = { last_status: 204, last_error: null, next_try_at: null };
    for (const { message_id, created_at, ...rest } of await endpoint.deliveries()) {
      assert.deepEqual(rest, { ...fields, ...last });
      assert.ok(sent.includes(message_id) && Math.abs(Date.parse(created_at) - Date.now()) < 120_000);
    }
    const [, again = ''] = sent;
    const { status, json } = await endpoint.redeliver(again);
    assert.deepEqual([status, json.data], [202, { message_id: again }]);
    const payloads = await endpoint.payloads(6);
    assert.equal(endpoint.received.at(-1)?.id, again);
    // Two messages of one millisecond have equal bodies, so compare those with the id.
    const [first, second, ...more] = payloads.filter((_, i) => endpoint.received[i]?.id === again);
    assert.deepEqual([second, more], [first, []], 'the body changed');
    assert.equal((await endpoint.deliveries()).length, 5);
    assert.equal((await endpoint.redeliver('msg_unknown')).status, 404);
  });

  test('send pending messages after the endpoint is enabled again, without events from between', async (t) => {
    const by = await callerIn('paused');
    const endpoint = await createEndpoint(t, by, 'mastery.reached');
    endpoint.receiver.answerWith(500);
    await reachMastery(by, 'before');
    await endpoint.firstTryFailed();
    const [failed] = await endpoint.deliveries();
    assert.deepEqual([failed.status, failed.last_status], ['pending', 500]);
    assert.ok(Date.parse(failed.next_try_at) > Date.parse(failed.created_at));
    const disabled = await endpoint.patch({ enabled: false });
    assert.deepEqual([disabled.enabled, disabled.disabled_reason], [false, 'request']);
    endpoint.receiver.answerWith(204);
    await reachMastery(by, 'between');
    await dispatched();
    const nextRun = async () => Number(await redis.zscore(nextDeliveriesKey, `paused:${endpoint.id}`));
    await waitFor('the next run to be postponed', async () => (await nextRun()) > Date.now() + 10_000);
    assert.equal(endpoint.received.length, 1);
    assert.equal((await endpoint.patch({ enabled: true })).enabled, true);
    assert.ok((await nextRun()) <= Date.now(), 'the next run is still postponed');
    await reachMastery(by, 'afterwards');
    await endpoint.payloads(3);
    await endpoint.allDelivered();
    const users = endpoint.received.map(({ text }) => JSON.parse(text).data.user_id);
    assert.deepEqual(new Set(users), new Set(['before', 'afterwards']));
    assert.equal((await endpoint.deliveries()).length, 2);
  });

  test('stop for a deleted endpoint, and its messages are removed', async (t) => {
    const by = await callerIn('deleted');
    const [endpoint, other] = [await createEndpoint(t, by, '*'), await createEndpoint(t, by, '*')];
    endpoint.receiver.answerWith(500);
    await reachMastery(by, 'ada');
    await endpoint.firstTryFailed();
    assert.equal((await call(by, 'DELETE', endpoint.pathOf())).status, 200);
    await reachMastery(by, 'ben');
    await other.payloads(2);
    await dispatched();
    assert.equal(endpoint.received.length, 1);
    assert.deepEqual(await redis.keys(`${messagesPrefix(endpoint.id)}*`), []);
    assert.equal(await redis.zscore(nextDeliveriesKey, `deleted:${endpoint.id}`), null);
  });

  test('send goal.reached and goal.at_risk with the forecast of GET /predictions', async (t) => {
    const by = await callerIn('goals');
    const endpoint = await createEndpoint(t, by, 'goal.reached', 'goal.at_risk');
    const goals = Object.entries({ 'goal.reached': 400, 'goal.at_risk': 1600 });
    for (const [i, [type, target_score]] of goals.entries()) {
      const user_id = `learner-${target_score}`;
      // A total of fewer answers raises no alert.
      for (const _ of indices(goalConstants.baselineAnswers))
        await by.track({ user_id, skill_id: 'algebra', is_correct: target_score === 400 });
      assert.equal((await call(by, 'PUT', `goals/${user_id}`, { target_score })).status, 200);
      const payload = (await endpoint.payloads(i + 1)).at(-1);
      const { current_total, predicted_total, goal_probability, ...goal } = payload?.data ?? {};
      assert.deepEqual([payload?.type, goal], [type, { user_id, target_score, target_date: null }]);
      const { data } = (await by.get(`/api/v1/predictions/${user_id}?days=365`)).json;
      const forecast = [data.current_total, data.predicted_total_in_365_days];
      assert.deepEqual([current_total, predicted_total], forecast);
      assert.ok(typeof goal_probability === 'number');
    }
  });

  test('send erasure.completed without the learner and remove the messages of the learner', async (t) => {
    const by = await callerIn('erased');
    const endpoint = await createEndpoint(t, by, '*');
    await reachMastery(by, 'to-be-erased');
    await endpoint.payloads(1);
    await endpoint.allDelivered();
    const ownId = endpoint.received[0]?.id ?? '';
    assert.ok(parseLearnerHash(ownId));
    const { erasure_id, status_url } = (await call(by, 'DELETE', 'learners/to-be-erased')).json.data;
    const [, payload] = await endpoint.payloads(2);
    assert.deepEqual([payload?.type, payload?.data], ['erasure.completed', { erasure_id }]);
    const [, message] = endpoint.received;
    assert.doesNotMatch(`${message?.text}`, /to-be-erased/);
    assert.equal(parseLearnerHash(message?.id ?? ''), null);
    await erasureDone(by, status_url);
    const left = (await endpoint.deliveries()).map((one) => one.message_id);
    assert.deepEqual(left, [message?.id]);
    assert.equal((await endpoint.redeliver(ownId)).status, 404);
  });

  test('send model.published after npm run fit and its rollback', async (t) => {
    const by = await callerIn('fitted');
    const endpoint = await createEndpoint(t, by, 'model.published');
    await storeAnswers(clickhouse, madeAnswers('fitted', bigSkills.slice(0, 1), 8, 5));
    const { redisUrl: REDIS_URL, clickhouseUrl: CLICKHOUSE_URL } = service;
    const env = { REDIS_URL, CLICKHOUSE_URL, DATA_DIR: service.dataDir };
    for (const args of [[], ['--back']]) {
      const { code, err } = await runCommand('fit', env, '--tenant', 'fitted', ...args);
      assert.equal(code, 0, err);
    }
    const versions = (await endpoint.payloads(2)).map(({ data }) => `${data.version} from ${data.based_on}`);
    assert.deepEqual(versions, ['1 from 0', '0 from 1']);
  });
});

test('WEBHOOK_ALLOW_PRIVATE allows private addresses, but no user name in a URL', async () => {
  const by = await callerIn('private');
  const statusOf = async (url: string) =>
    (await call(by, 'POST', 'webhooks', { url, event_types: ['*'] })).status;
  for (const url of ['http://[::1]', 'https://10.0.0.1']) assert.equal(await statusOf(url), 201, url);
  assert.equal(await statusOf('http://user@127.0.0.1'), 400);
});

test('GET /metrics counts delivered and failed webhook messages', async () => {
  const outcomes = ['delivered', 'failed', 'given_up'];
  const [delivered = 0, failed = 0, givenUp] = await Promise.all(
    outcomes.map((outcome) => metric(`skilltrace_webhooks_total{outcome="${outcome}"`)),
  );
  assert.ok(delivered >= 20 && failed >= 2, `${delivered} ${failed}`);
  assert.deepEqual([givenUp, await metric('skilltrace_webhook_events_waiting')], [0, 0]);
});
