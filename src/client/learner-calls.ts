import { withEventId } from './answer.js';
import { parsed, SkilltraceError } from './errors.js';
import { type AllQuery, entriesOf, Operations, path, type Tagged, type WriteOptions } from './operations.js';
import type { CallOptions } from './transport.js';
import type * as Api from './types.js';

export interface ExplainOptions extends CallOptions {
  readonly explain?: boolean | undefined;
  /** Answers to explain, 1 to 50. */
  readonly steps?: number | undefined;
}

/** A line of an export; its fields depend on the type. */
export interface ExportLine {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** Operations on learners. All reject with a SkilltraceError. */
export class LearnerCalls extends Operations {
  /** Counts one answer now. It gets an event id where it has none. */
  async trackAnswer(answer: Api.Answer, options: CallOptions = {}): Promise<Api.AnswerResult> {
    return this.post('/api/v1/track-answer', withEventId(answer), options);
  }

  /** Counts 1 to 1000 answers now, each with a result of its own. Rejects where none was counted. */
  async trackAnswers(answers: readonly Api.Answer[], options: CallOptions = {}): Promise<Api.BatchResult> {
    return this.post('/api/v1/track-answers', { events: answers.map(withEventId) }, options);
  }

  /** Scores now, in 30 days and in `days`. */
  async predictions(userId: string, query: Api.PredictionQuery & CallOptions = {}): Promise<Api.Prediction> {
    return this.get(path`/api/v1/predictions/${userId}`, query);
  }

  /** Predictions of up to 500 learners, each with a result of its own. */
  async classPredictions(
    request: Api.ClassRequest,
    options: CallOptions = {},
  ): Promise<Api.ClassPredictions> {
    return this.post('/api/v1/predictions', request, options);
  }

  /** The forecast under a plan of practice. */
  async whatIf(userId: string, plan: Api.Plan, options: CallOptions = {}): Promise<Api.WhatIf> {
    return this.post(path`/api/v1/predictions/${userId}/what-if`, plan, options);
  }

  /** Which of up to 1000 questions to ask the learner next, the best first, and why. */
  async nextItems(
    userId: string,
    request: Api.NextItemsRequest,
    options: CallOptions = {},
  ): Promise<Api.NextItems> {
    return this.post(path`/api/v1/next-items/${userId}`, request, options);
  }

  /** Mastery of all skills; of a page of them with `limit` or `cursor`. */
  async mastery(userId: string, query: Api.PageQuery & CallOptions = {}): Promise<Api.Mastery> {
    return this.get(path`/api/v1/mastery/${userId}`, query);
  }

  /** Mastery of up to 500 learners, each with a result of its own. */
  async classMastery(request: Api.ClassMasteryRequest, options: CallOptions = {}): Promise<Api.ClassMastery> {
    return this.post('/api/v1/mastery', request, options);
  }

  /** Mastery of one skill, and with `explain` why. */
  async skillMastery(userId: string, skillId: string, query: ExplainOptions = {}): Promise<Api.SkillMastery> {
    return this.get(path`/api/v1/mastery/${userId}/${skillId}`, query);
  }

  /** A page of the learner's answers on one skill, newest first. */
  async skillAnswers(
    userId: string,
    skillId: string,
    query: Api.PageQuery & CallOptions = {},
  ): Promise<Api.SkillAnswerPage> {
    return this.get(path`/api/v1/mastery/${userId}/${skillId}/history`, query);
  }

  /** How fast mastery moves. */
  async velocity(userId: string, query: Api.VelocityQuery & CallOptions = {}): Promise<Api.Velocity> {
    return this.get(path`/api/v1/velocity/${userId}`, query);
  }

  async goal(userId: string, options: CallOptions = {}): Promise<Tagged<Api.Goal>> {
    return this.tagged({ method: 'GET', path: path`/api/v1/goals/${userId}` }, options);
  }

  async setGoal(
    userId: string,
    goal: Api.GoalSetting,
    options: WriteOptions = {},
  ): Promise<Tagged<Api.Goal>> {
    return this.put(path`/api/v1/goals/${userId}`, goal, options);
  }

  async deleteGoal(userId: string, options: WriteOptions = {}): Promise<Api.DeletedGoal> {
    return this.remove(path`/api/v1/goals/${userId}`, options);
  }

  /** A page of the learners whose ids begin with `prefix`; of all without one. */
  async learners(query: Api.LearnersQuery & CallOptions = {}): Promise<Api.LearnerPage> {
    return this.get('/api/v1/learners', query);
  }

  /** A page of the learner's answers, newest first. */
  async attempts(userId: string, query: Api.PageQuery & CallOptions = {}): Promise<Api.AttemptPage> {
    return this.get(path`/api/v1/learners/${userId}/attempts`, query);
  }

  /** All of the learner's answers, newest first. @param query `limit`: answers of a page */
  allAttempts(userId: string, query: AllQuery = {}): AsyncGenerator<Api.Attempt, void, undefined> {
    return entriesOf(
      (cursor) => this.attempts(userId, { ...query, cursor }),
      ({ attempts }) => attempts,
    );
  }

  /** Takes a wrongly reported answer back. */
  async takeBack(userId: string, eventId: string, options: CallOptions = {}): Promise<Api.TakenBack> {
    return this.remove(path`/api/v1/learners/${userId}/attempts/${eventId}`, options);
  }

  /** All that is stored about the learner. Rejects with BAD_RESPONSE where the export was cut. */
  async *exportLearner(
    userId: string,
    options: CallOptions = {},
  ): AsyncGenerator<ExportLine, void, undefined> {
    const request = { method: 'GET', path: path`/api/v1/learners/${userId}/export` } as const;
    let last: ExportLine | undefined;
    for await (const text of this.transport.lines(request, options)) {
      last = parsed(text) as ExportLine | undefined;
      if (last !== undefined) yield last;
    }
    if (last?.type === 'end') return;
    throw new SkilltraceError('BAD_RESPONSE', 'The export is not complete', { status: 200 });
  }

  /** Begins to erase the learner everywhere; `erasure` tells when that is done. */
  async eraseLearner(userId: string, options: CallOptions = {}): Promise<Api.BegunErasure> {
    return this.remove(path`/api/v1/learners/${userId}`, options);
  }
}
