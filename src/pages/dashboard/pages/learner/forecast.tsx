import { useMemo } from 'preact/hooks';
import type { Prediction } from '../../../../client/types.js';
import { hasOpenGoal } from '../../../../domain/classes/learner-status.js';
import { formatDecimal, formatPercent, pluralize } from '../../base/format.js';
import { useLoad } from '../../base/load.js';
import { useViewer } from '../../base/viewer.js';
import { Loaded } from '../../parts/loaded.jsx';
import { QuerySelect } from '../../parts/query-select.jsx';
import { Panel, Stat, Stats } from '../../parts/stat.jsx';
import { buildStatusInput } from '../class/status-input.js';
import { Advice } from './advice.jsx';
import { Evidence, rateEvidence } from './evidence.jsx';
import { type FanPoint, ForecastFan, type Measure, measureTexts } from './forecast-fan.jsx';
import { GoalPanel } from './goal-panel.jsx';
import type { LearnerProps } from './learner-props.js';
import { WhatIfPanel } from './what-if.jsx';

const horizons = [7, 30, 90, 180, 365];
const horizonOptions = horizons.map((days) => [days, pluralize(days, 'day')] as const);
const levels = [0.5, 0.8, 0.9, 0.95];
const levelOptions = levels.map((level) => [level, formatPercent(level)] as const);

const parseChoice = (text: string | undefined, choices: readonly number[], fallback: number): number =>
  choices.find((choice) => String(choice) === text) ?? fallback;

/** Both ends of the fan and one or two days in between. */
const selectForecastDays = (days: number): number[] => {
  const between = days <= 30 ? [Math.ceil(days / 2)] : [30];
  return [...new Set([1, ...between, ...(days > 90 ? [Math.ceil(days / 2)] : []), days])];
};

interface ForecastProps extends LearnerProps {
  readonly onGoalChange: () => void;
}

export function Forecast({ onGoalChange, ...learner }: ForecastProps) {
  const { userId, query, totals, getSkillName } = learner;
  const { api } = useViewer();
  const days = parseChoice(query.days, horizons, 90);
  const level = parseChoice(query.level, levels, 0.8);
  const measure: Measure = query.score === 'math' || query.score === 'rw' ? query.score : 'total';
  const forecasts = useLoad(
    (signal) =>
      Promise.all(
        selectForecastDays(days).map((days) =>
          api.predictions(userId, { days, confidence_level: level, signal }),
        ),
      ),
    [api, userId, days, level],
    true,
  );
  return (
    <Loaded load={forecasts} subject="the forecast">
      {(all) => {
        const last = all.at(-1) as Prediction;
        return (
          <div class="stack">
            <Panel
              title="Forecast"
              about={`Test scores on a scale of 400 to 1600 (200 to 800 per section), if practice continues as in the last 14 days: ${formatRate(last)}.`}
            >
              <div class="row choices">
                <QuerySelect label="Horizon" parameter="days" value={days} options={horizonOptions} />
                <QuerySelect label="Range" parameter="level" value={level} options={levelOptions} />
                <QuerySelect
                  label="Score"
                  parameter="score"
                  value={measure}
                  options={Object.entries(measureTexts)}
                />
              </div>
              <ScoreTiles prediction={last} />
              <div class="wide-grid">
                <FanPanel predictions={all} measure={measure} />
                <GoalPanel
                  userId={userId}
                  goal={last.goal_tracking}
                  statusInput={buildStatusInput(totals, last, getSkillName)}
                  onChange={() => {
                    forecasts.reload();
                    onGoalChange();
                  }}
                />
              </div>
            </Panel>
            <div class="grid">
              <WhatIfPanel {...learner} prediction={last} level={level} />
              <Advice {...learner} prediction={last} />
            </div>
          </div>
        );
      }}
    </Loaded>
  );
}

const formatRate = ({ assumed_practice: { math, rw } }: Prediction): string => {
  const rate = math.answers_per_day + rw.answers_per_day;
  return rate < 0.05 ? 'no answers' : `about ${formatDecimal(1)(rate)} answers per day`;
};

const readPrediction = (prediction: Prediction, measure: Measure, days: number): number =>
  prediction[`predicted_${measure}_in_${days}_days` as `predicted_total_in_${number}_days`] as number;

function FanPanel({
  predictions,
  measure,
}: {
  readonly predictions: readonly Prediction[];
  readonly measure: Measure;
}) {
  const points = useMemo(() => {
    const now: FanPoint = {
      days: 0,
      score: predictions[0]?.[`current_${measure}`] as number,
      low: null,
      high: null,
    };
    const later = predictions.map((prediction): FanPoint => {
      const { low, high } = prediction.confidence_intervals[measure];
      return {
        days: prediction.forecast_days,
        score: readPrediction(prediction, measure, prediction.forecast_days),
        low,
        high,
      };
    });
    return [now, ...later];
  }, [predictions, measure]);
  const last = predictions.at(-1) as Prediction;
  return (
    <ForecastFan
      points={points}
      measure={measure}
      level={last.confidence_level}
      goal={measure === 'total' && hasOpenGoal(last.goal_tracking) ? last.goal_tracking : null}
    />
  );
}

function ScoreTiles({ prediction }: { readonly prediction: Prediction }) {
  const { forecast_days: days, confidence_intervals: intervals, confidence_level: level } = prediction;
  return (
    <Stats>
      <Stat
        label="Current score"
        value={prediction.current_total}
        note={`math ${prediction.current_math}, reading and writing ${prediction.current_rw}`}
      >
        Estimated result of a test today, in steps of 10: math plus reading and writing. The estimate is based
        on practice answers and is not a test result.
      </Stat>
      <Stat
        label={`Score in ${pluralize(days, 'day')}`}
        value={readPrediction(prediction, 'total', days)}
        note={
          <>
            {formatPercent(level)} range {intervals.total.low} to {intervals.total.high}
            {prediction.range_advice !== null && <span class="sub">{prediction.range_advice.text}</span>}
          </>
        }
      >
        Forecast if practice continues as in the last 14 days. The probability that a test on that day falls
        inside the range is {formatPercent(level)}. Results of the same learner vary by about 30 points
        between tests.
      </Stat>
      <SectionTile prediction={prediction} section="math" />
      <SectionTile prediction={prediction} section="rw" />
    </Stats>
  );
}

function SectionTile({
  prediction,
  section,
}: {
  readonly prediction: Prediction;
  readonly section: 'math' | 'rw';
}) {
  const { low, high } = prediction.confidence_intervals[section];
  const practice = prediction.assumed_practice[section];
  const reliability = prediction.reliability[section];
  const answers = Math.round(prediction.data_points[section]);
  return (
    <Stat
      label={`${measureTexts[section]} now`}
      value={prediction[`current_${section}`]}
      note={<Evidence reliability={reliability} answers={answers} />}
      tone={rateEvidence(reliability).isThin ? 'alert' : undefined}
    >
      In {pluralize(prediction.forecast_days, 'day')}:{' '}
      {readPrediction(prediction, section, prediction.forecast_days)} ({low} to {high}). Reliability is the
      share of the estimate that is based on the {pluralize(answers, 'answer')} of this learner. At 0 %, the
      estimate is that of the average learner. Answers on skills without a section count half in each section.
      Assumed practice: {formatDecimal(1)(practice.answers_per_day)} answers per day, on{' '}
      {formatDecimal(1)(practice.active_days_14)} of 14 days.
    </Stat>
  );
}
