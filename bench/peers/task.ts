import { Redis } from 'ioredis';
import { workerData } from 'piscina';
import { computeConditions } from '../../src/domain/answer/answer-conditions.js';
import { applyAnswer } from '../../src/domain/answer/apply-answer.js';
import { defaultParameters } from '../../src/domain/base/bkt-parameters.js';
import { unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import { hashQuestionKeys } from '../../src/domain/tracing/course.js';
import { newLearner, newSkill } from '../../src/domain/tracing/learner-states.js';
import { decodeLearner, encodeLearner } from '../../src/store/learners/learner-codec.js';
import { decodeSkill, encodeSkill } from '../../src/store/learners/skill-codec.js';
import type { PeerSettings } from '../targets/peers.js';
import type { AnswerEvent } from './fastify-app.js';
import { buildResponse } from './tracing.js';

const { redisUrl } = workerData as PeerSettings;
const redis = new Redis(redisUrl);

export default async function track(event: AnswerEvent): Promise<string> {
  const key = `task:${event.user_id}`;
  const [learnerRecord, skillRecord] = await redis.hmgetBuffer(key, 'L', event.skill_id);
  const states = {
    keys: hashQuestionKeys([event.skill_id], event.item_id ?? null),
    learner: learnerRecord ? decodeLearner(learnerRecord) : newLearner,
    skills: [skillRecord ? decodeSkill(skillRecord) : newSkill(defaultParameters)] as const,
    item: undefined,
  };
  const answer = {
    isCorrect: event.is_correct,
    occurredAt: event.occurred_at === undefined ? Date.now() : Date.parse(event.occurred_at),
    timeSpentSeconds: event.time_spent_seconds ?? null,
    confidenceScore: event.confidence_score ?? null,
    questionDifficulty: event.question_difficulty ?? null,
  };
  const conditions = computeConditions(unfittedModel, [event.skill_id], null, states, answer);
  const { learner, skills, masteriesBefore } = applyAnswer(states, answer, conditions);
  const [skill] = skills;
  await redis.hset(key, 'L', encodeLearner(learner), event.skill_id, encodeSkill(skill));
  return JSON.stringify(buildResponse({ masteryBefore: masteriesBefore[0], after: skill }));
}
