import { bench, do_not_optimize, group } from 'mitata';
import { encodeAttemptRow } from '../../src/contracts/answers/attempt-row.js';
import { learningEventCheck } from '../../src/contracts/answers/events.js';
import { applyAnswer } from '../../src/domain/answer/apply-answer.js';
import { formulaVersion } from '../../src/domain/base/formula-version.js';
import { decodeLearner, encodeLearner } from '../../src/store/learners/learner-codec.js';
import { decodeSkill, encodeSkill } from '../../src/store/learners/skill-codec.js';
import { createAnswer, cycleThrough, generateSteps, start } from './generated-learners.js';

const steps = generateSteps(1000);

export function recordBenches(): void {
  codecBenches();
  eventBenches();
  rowBenches();
}

function codecBenches(): void {
  const learner = cycleThrough(steps.map(({ states }) => states.learner));
  const skill = cycleThrough(steps.map(({ states }) => states.skills[0]));
  const learnerRecord = cycleThrough(steps.map(({ states }) => encodeLearner(states.learner)));
  const skillRecord = cycleThrough(steps.map(({ states }) => encodeSkill(states.skills[0])));
  group('records of a learner', () => {
    bench('codec: encode learner', () => do_not_optimize(encodeLearner(learner())));
    bench('codec: decode learner', () => do_not_optimize(decodeLearner(learnerRecord())));
    bench('codec: encode skill', () => do_not_optimize(encodeSkill(skill())));
    bench('codec: decode skill', () => do_not_optimize(decodeSkill(skillRecord())));
  });
}

function eventBenches(): void {
  const bodies = steps.map((_, i) => JSON.stringify(createEvent(i)));
  const body = cycleThrough(bodies);
  const event = cycleThrough(bodies.map((text): unknown => JSON.parse(text)));
  group('event', () => {
    bench('event: schema check', () => do_not_optimize(learningEventCheck.Check(event())));
    bench('event: parsed and checked', () => do_not_optimize(learningEventCheck.Check(JSON.parse(body()))));
  });
}

const createEvent = (i: number) => ({
  user_id: `learner-${i % 500}`,
  skill_id: `skill-${i % 20}`,
  item_id: `item-${i % 200}`,
  event_id: `event-${i}`,
  is_correct: createAnswer(i).isCorrect,
  time_spent_seconds: createAnswer(i).timeSpentSeconds,
  question_difficulty: createAnswer(i).questionDifficulty,
  occurred_at: new Date(createAnswer(i).occurredAt).toISOString(),
});

function rowBenches(): void {
  const rows = cycleThrough(steps.map((_, i) => createRow(i)));
  group('row', () => {
    bench('row: encode', () => {
      const { event, figures, conditions } = rows();
      do_not_optimize(encodeAttemptRow(event, figures, conditions));
    });
  });
}

function createRow(i: number) {
  const { skillId, states, answer, conditions } = steps[i] as (typeof steps)[number];
  const { masteriesBefore, learner, skills, isRapid } = applyAnswer(states, answer, conditions);
  const ids = {
    tenant: 'default',
    userId: 'learner',
    skillIds: [skillId] as const,
    itemId: `item-${i % 200}`,
    eventId: `event-${i}`,
  };
  const figures = {
    learnerSeq: learner.attempts,
    skills: [
      { masteryBefore: masteriesBefore[0], masteryAfter: skills[0].mastery, plateauDetected: false },
    ] as const,
    isRapid,
    efficiencyIndex: 50,
    recommendationCode: '',
    modelVersion: formulaVersion,
    eventFingerprint: 0x123456789abc,
    learnerVersion: learner.attempts,
    baselineTotal: learner.baselineTotal,
  };
  return { event: { ...ids, ...answer, receivedAt: start }, figures, conditions };
}
