import { bench, do_not_optimize, group } from 'mitata';
import { encodeAttemptRow } from '../../src/contracts/attempt-row.js';
import { learningEventCheck } from '../../src/contracts/events.js';
import { applyAnswer } from '../../src/domain/answer/apply-answer.js';
import { modelVersion } from '../../src/domain/base/model-version.js';
import { decodeLearner, encodeLearner } from '../../src/store/learners/learner-codec.js';
import { decodeSkill, encodeSkill } from '../../src/store/learners/skill-codec.js';
import { answerAt, inTurn, start, stepsOf } from './made.js';

const steps = stepsOf(1000);

export function recordBenches(): void {
  codecBenches();
  eventBenches();
  rowBenches();
}

function codecBenches(): void {
  const learner = inTurn(steps.map(({ states }) => states.learner));
  const skill = inTurn(steps.map(({ states }) => states.skill));
  const learnerRecord = inTurn(steps.map(({ states }) => encodeLearner(states.learner)));
  const skillRecord = inTurn(steps.map(({ states }) => encodeSkill(states.skill)));
  group('records of a learner', () => {
    bench('codec: encode learner', () => do_not_optimize(encodeLearner(learner())));
    bench('codec: decode learner', () => do_not_optimize(decodeLearner(learnerRecord())));
    bench('codec: encode skill', () => do_not_optimize(encodeSkill(skill())));
    bench('codec: decode skill', () => do_not_optimize(decodeSkill(skillRecord())));
  });
}

function eventBenches(): void {
  const bodies = steps.map((_, i) => JSON.stringify(eventAt(i)));
  const body = inTurn(bodies);
  const event = inTurn(bodies.map((text): unknown => JSON.parse(text)));
  group('event', () => {
    bench('event: schema check', () => do_not_optimize(learningEventCheck.Check(event())));
    bench('event: parsed and checked', () => do_not_optimize(learningEventCheck.Check(JSON.parse(body()))));
  });
}

const eventAt = (i: number) => ({
  user_id: `learner-${i % 500}`,
  skill_id: `skill-${i % 20}`,
  item_id: `item-${i % 200}`,
  event_id: `event-${i}`,
  is_correct: answerAt(i).isCorrect,
  time_spent_seconds: answerAt(i).timeSpentSeconds,
  question_difficulty: answerAt(i).questionDifficulty,
  occurred_at: new Date(answerAt(i).occurredAt).toISOString(),
});

function rowBenches(): void {
  const rows = inTurn(steps.map((_, i) => rowAt(i)));
  group('row', () => {
    bench('row: encode', () => {
      const { event, figures, conditions } = rows();
      do_not_optimize(encodeAttemptRow(event, figures, conditions));
    });
  });
}

function rowAt(i: number) {
  const { skillId, states, answer, conditions } = steps[i] as (typeof steps)[number];
  const { masteryBefore, learner, skill, isRapid } = applyAnswer(states, answer, conditions);
  const ids = {
    tenant: 'default',
    userId: 'learner',
    skillId,
    itemId: `item-${i % 200}`,
    eventId: `event-${i}`,
  };
  const figures = {
    learnerSeq: learner.attempts,
    masteryBefore,
    masteryAfter: skill.mastery,
    plateauDetected: false,
    isRapid,
    efficiencyIndex: 50,
    recommendationCode: '',
    modelVersion,
    eventFingerprint: 0x123456789abc,
    learnerVersion: learner.attempts,
    baselineTotal: learner.baselineTotal,
  };
  return { event: { ...ids, ...answer, receivedAt: start }, figures, conditions };
}
