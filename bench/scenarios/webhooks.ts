import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { defaultParameters } from '../../src/domain/base/bkt-parameters.js';
import { traceAnswer } from '../../src/domain/tracing/bkt.js';
import { isMasteryReached } from '../../src/domain/tracing/learner-states.js';
import { computeSum, indices } from '../../src/lists.js';
import { learnerId, usualTraffic } from '../load/traffic.js';
import { type Bench, measureInTurns, startDedicatedService } from '../measurement/bench.js';
import { checkLedger } from '../measurement/ledger.js';
import type { Contestant } from '../measurement/measure.js';
import { allParts } from '../measurement/rounds.js';
import {
  buildMeasurement,
  createServiceContestant,
  type Scenario,
  type ServiceContestant,
  withScheduledDrain,
} from '../measurement/scenario.js';
import { postAnswers, seedAnswers } from '../measurement/seed.js';
import { createGoalFigure, createPlainFigure } from '../results/goals.js';
import type { Figure } from '../results/results.js';
import { computeRatioSpread, computeSpread } from '../results/spread.js';
import { waitUntilDone } from '../targets/wait.js';
import { pollMs, type Subscriber, startSubscriber } from './subscriber.js';

const name = 'webhooks';
/** Few enough that learners master skills, and that one run checks all their goals. */
const traffic = { ...usualTraffic, learners: 1000, skills: 10 };
const roundSeconds = 10;
/** Messages go at 250 a second, and goal checks run every 5 s. Both contestants wait this long. */
const settleMs = 15_000;
/** For an unfitted skill, with the default parameters. */
const answersToMastery = countRightToMastery(defaultParameters.pInit);
const burst = { learners: 10_000, rate: 500, seconds: 15, afterMs: 2000 };
/** Leaves all learners one answer short of mastery. */
const answersNearMastery = burst.learners * (answersToMastery - 1);
const burstLearnerId = (i: number): string => `burst-${i}`;

function countRightToMastery(mastery: number): number {
  return isMasteryReached(mastery, false)
    ? 0
    : 1 + countRightToMastery(traceAnswer(defaultParameters, mastery, true).masteryAfter);
}

interface WebhookStage {
  readonly bench: Bench;
  readonly usual: ServiceContestant;
  readonly subscriber: Subscriber;
}

export const webhooks: Scenario = {
  name,
  about: 'single answers without and with a webhook subscriber; the same while 10,000 learners reach mastery',
  isLong: true,
  run: async (bench) => {
    const service = await startDedicatedService(bench, name);
    const subscriber = await startSubscriber(service, name, bench.closers);
    const usual = createServiceContestant(service, name, traffic);
    const stage = { bench, usual, subscriber };
    const found = [await measureUsual(stage), await measureBurst(stage)];
    const learners = [
      ...indices(traffic.learners).map((i) => learnerId(i)),
      ...indices(burst.learners).map(burstLearnerId),
    ];
    const ledger = await checkLedger(usual, learners);
    const measurements = found.flatMap((one) => one.measurements.map((each) => ({ ...each, ledger })));
    return { results: [{ measurements }], figures: found.flatMap(({ figures }) => figures) };
  },
};

/** Enables the endpoint only during the measurement. */
const withSubscriber = (subscriber: Subscriber, contestant: Contestant): Contestant => ({
  ...contestant,
  beside: async (end) => {
    await subscriber.listen(true);
    await waitForAbort(end);
    await subscriber.listen(false);
  },
});

async function waitForAbort(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}

async function measureUsual({ bench, usual, subscriber }: WebhookStage) {
  const waitUntilSettled = async (): Promise<void> => {
    await Promise.all([usual.drains.waitUntilDrained(), subscriber.waitUntilDelivered(), sleep(settleMs)]);
  };
  const alone: Contestant = { ...usual, name: 'no subscriber', waitUntilSettled };
  const subscribed = withSubscriber(subscriber, { ...alone, name: 'a subscriber' });
  const pace = { rounds: bench.settings.main.rounds, seconds: roundSeconds };
  const rounds = await measureInTurns(bench, [alone, subscribed], pace);
  const answers = computeSum(rounds.getSamples(subscribed.name).map(({ units }) => units));
  const figures: Figure[] = [
    createGoalFigure(
      'webhooksCpu',
      computeRatioSpread(rounds.cpu(subscribed.name, allParts), rounds.cpu(alone.name, allParts)),
    ),
    createWebhookFigure('webhooks per 1000 answers', 'messages', [
      (1000 * subscriber.heard.length) / answers,
    ]),
  ];
  const measurements = [alone, subscribed].map((one) =>
    buildMeasurement(one.name, rounds.getSamples(one.name)),
  );
  return { measurements, figures };
}

const createWebhookFigure = (title: string, unit: string, values: readonly number[]): Figure =>
  createPlainFigure(title, 'receiver responds immediately', unit, computeSpread(values));

/** All learners reach mastery at the same time, on another skill in each round. */
async function measureBurst(stage: WebhookStage) {
  const { bench, usual, subscriber } = stage;
  const { rounds } = bench.settings.main;
  const skills = indices(2 * rounds).map((i) => `burst-${i}`);
  for (const skill of skills) {
    bench.progress(`preparing learners for ${skill}`);
    await seedAnswers(usual, answersNearMastery, createRightAnswers(skill));
  }
  const seconds: number[] = [];
  const burstOf = (isTold: boolean) => async (end: AbortSignal) => {
    const took = await sendBurst(stage, skills.shift() ?? '', isTold);
    if (isTold) seconds.push(took);
    await waitForAbort(end);
    await subscriber.listen(false);
  };
  const contestants = [false, true].map((isTold) => ({
    ...withScheduledDrain(usual),
    rate: burst.rate,
    name: isTold ? 'mastery burst, subscriber' : 'mastery burst, no subscriber',
    beside: burstOf(isTold),
  }));
  const measured = await measureInTurns(bench, contestants, { rounds, seconds: burst.seconds });
  const [untold = [], told = []] = contestants.map((one) => measured.p99(one.name));
  const perSecond = seconds.map((took) => burst.learners / took);
  return {
    measurements: contestants.map(({ name }) => buildMeasurement(name, measured.getSamples(name))),
    figures: [
      createGoalFigure('webhooksP99', computeRatioSpread(told, untold)),
      createWebhookFigure('time to deliver a burst of 10,000 webhooks', 's', seconds),
      createWebhookFigure('webhooks delivered per second', 'messages', perSecond),
    ],
  };
}

const createRightAnswers =
  (skill_id: string) =>
  (i: number): object => ({ user_id: burstLearnerId(i % burst.learners), skill_id, is_correct: true });

/** @returns seconds until the last webhook */
async function sendBurst(
  { usual, subscriber }: WebhookStage,
  skill: string,
  hasSubscriber: boolean,
): Promise<number> {
  await subscriber.listen(hasSubscriber);
  await sleep(burst.afterMs);
  const from = subscriber.heard.length;
  const since = performance.now();
  await postAnswers(usual, burst.learners, createRightAnswers(skill));
  const missing = async (): Promise<string | null> => {
    const ofSkill = subscriber.heard.slice(from).filter((body) => body.includes(`"${skill}"`));
    return ofSkill.length >= burst.learners
      ? null
      : `Only ${ofSkill.length} of ${burst.learners} webhooks arrived`;
  };
  if (hasSubscriber) await waitUntilDone(missing, { pollMs });
  return (performance.now() - since) / 1000;
}
