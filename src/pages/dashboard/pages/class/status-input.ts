import type { ClassMastery, Prediction } from '../../../../client/types.js';
import { hasOpenGoal, type StatusInput } from '../../../../domain/classes/learner-status.js';
import { isDatePast } from '../../../../domain/score/goal.js';
import { computeToday, countIdleDays } from '../../base/school-days.js';

type AnswerTotals = Pick<
  Extract<ClassMastery['results'][number], { readonly status: 200 }>['data'],
  'total_attempts' | 'last_attempt_at' | 'plateaus'
>;

export const buildStatusInput = (
  answerTotals: AnswerTotals,
  { goal_tracking: goal, assumed_practice: practice, current_total, recommendation_codes }: Prediction,
  getSkillName: (skillId: string) => string,
): StatusInput => ({
  answers: answerTotals.total_attempts,
  idleDays: countIdleDays(answerTotals.last_attempt_at),
  goalStatus: goal.status,
  isOnTrack: goal.on_track,
  currentTotal: current_total,
  targetScore: goal.is_set ? goal.target_score : null,
  targetDate: goal.target_date,
  daysToGoal: goal.days_to_goal,
  chance: hasOpenGoal(goal) && !isDatePast(goal.target_date, computeToday()) ? goal.goal_probability : null,
  answersPerDay: practice.math.answers_per_day + practice.rw.answers_per_day,
  isFalling: recommendation_codes.some(({ code }) => code === 'DECLINE'),
  plateaus: answerTotals.plateaus.map(getSkillName),
});
