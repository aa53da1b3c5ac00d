/** What the service reports about a learner. */
import { studyAdvice } from '../../src/domain/advice/study-advice.js';
import { isMastered } from '../../src/domain/learner/expected.js';
import { forecastLearner, standardDays } from '../../src/domain/score/learner-forecast.js';
import type { ForecastSubject } from '../../src/domain/score/score.js';
import { sumOf } from '../../src/lists.js';

export function summarize(subject: ForecastSubject) {
  const forecastIn = (days: number) => forecastLearner(subject, { days, level: 0.8, goal: null });
  const forecast = forecastIn(standardDays);
  const { goal, neededRate, measures } = forecast;
  const context = { ...subject, measures, goal: { ...goal, neededRate }, locale: 'en' as const };
  const { views } = subject;
  return {
    figures: {
      mastered: views.filter((view) => isMastered(view, subject)).length,
      mastery: sumOf(views.map(({ mastery }) => mastery)) / views.length,
      total: forecast.current.total,
      total30: forecast.in30Days.total,
      total90: forecastIn(90).requested.scores.total,
      target: goal.targetScore,
      onTrack: Number(goal.onTrack),
      goalProbability: goal.probability,
      expectedShare: forecast.accuracy.expected,
    },
    advice: studyAdvice(context),
  };
}
