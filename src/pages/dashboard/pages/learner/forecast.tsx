import { useMemo } from 'preact/hooks';
import type { Prediction } from '../../../../client/types.js';
import { decimal, percent, plural } from '../../base/format.js';
import { useLoad } from '../../base/load.js';
import { useViewer } from '../../base/viewer.js';
import { Choice } from '../../parts/choice.jsx';
import { Loaded } from '../../parts/loaded.jsx';
import { Panel, Stat, Stats } from '../../parts/stat.jsx';
import { standingOf } from '../class/status.js';
import { Advice } from './advice.jsx';
import { answeredOf } from './answered.js';
import { Evidence, strengthOf } from './evidence.jsx';
import { type Dot, Fan, type Measure, measures } from './fan.jsx';
import { GoalPanel } from './goal.jsx';
import type { LearnerProps } from './learner-props.js';
import { WhatIfPanel } from './what-if.jsx';

const horizons = [7, 30, 90, 180, 365];
const horizonOptions = horizons.map((days) => [days, plural(days, 'day')] as const);
const levels = [0.5, 0.8, 0.9, 0.95];
const levelOptions = levels.map((level) => [level, percent(level)] as const);

const chosenOf = (text: string | undefined, choices: readonly number[], standard: number): number =>
  choices.find((choice) => String(choice) === text) ?? standard;

/** Both ends of the fan and one or two days in between. */
const daysAsked = (days: number): number[] => {
  const between = days <= 30 ? [Math.ceil(days / 2)] : [30];
  return [...new Set([1, ...between, ...(days > 90 ? [Math.ceil(days / 2)] : []), days])];
};

export function Forecast(learner: LearnerProps) {
  const { userId, query, skills, nameOf } = learner;
  const { api } = useViewer();
  const days = chosenOf(query.days, horizons, 90);
  const level = chosenOf(query.level, levels, 0.8);
  const measure: Measure = query.score === 'math' || query.score === 'rw' ? query.score : 'total';
  const forecasts = useLoad(
    (signal) =>
      Promise.all(
        daysAsked(days).map((days) => api.predictions(userId, { days, confidence_level: level, signal })),
      ),
    [api, userId, days, level],
    true,
  );
  return (
    <Loaded of={forecasts} what="the forecast">
      {(all) => {
        const last = all.at(-1) as Prediction;
        return (
          <div class="stack">
            <Panel
              title="Forecast"
              about={`Scores of a test on the scale from 400 to 1600 (each section 200 to 800), if practice goes on as in the last 14 days: ${rateText(last)}.`}
            >
              <div class="row choices">
                <Choice label="How far" name="days" value={days} options={horizonOptions} />
                <Choice label="Interval" name="level" value={level} options={levelOptions} />
                <Choice label="Score" name="score" value={measure} options={Object.entries(measures)} />
              </div>
              <ScoreTiles of={last} />
              <div class="wide-grid">
                <FanOf all={all} measure={measure} />
                <GoalPanel
                  userId={userId}
                  goal={last.goal_tracking}
                  standing={standingOf(answeredOf(skills), last, nameOf)}
                  onChange={forecasts.reload}
                />
              </div>
            </Panel>
            <div class="grid">
              <WhatIfPanel {...learner} prediction={last} level={level} />
              <Advice {...learner} of={last} />
            </div>
          </div>
        );
      }}
    </Loaded>
  );
}

const rateText = ({ assumed_practice: { math, rw } }: Prediction): string => {
  const rate = math.answers_per_day + rw.answers_per_day;
  return rate < 0.05 ? 'none' : `about ${decimal(1)(rate)} answers a day`;
};

const predictedIn = (of: Prediction, measure: Measure, days: number): number =>
  of[`predicted_${measure}_in_${days}_days` as `predicted_total_in_${number}_days`] as number;

function FanOf({ all, measure }: { readonly all: readonly Prediction[]; readonly measure: Measure }) {
  const dots = useMemo(() => {
    const now: Dot = { days: 0, score: all[0]?.[`current_${measure}`] as number, low: null, high: null };
    const later = all.map((of): Dot => {
      const { low, high } = of.confidence_intervals[measure];
      return { days: of.forecast_days, score: predictedIn(of, measure, of.forecast_days), low, high };
    });
    return [now, ...later];
  }, [all, measure]);
  const last = all.at(-1) as Prediction;
  return (
    <Fan
      dots={dots}
      measure={measure}
      level={last.confidence_level}
      goal={measure === 'total' ? last.goal_tracking : null}
    />
  );
}

function ScoreTiles({ of }: { readonly of: Prediction }) {
  const { forecast_days: days, confidence_intervals: intervals, confidence_level: level } = of;
  const share = of.expected_accuracy;
  return (
    <Stats>
      <Stat
        label="Score now"
        value={of.current_total}
        note={`math ${of.current_math}, reading and writing ${of.current_rw}`}
      >
        What a test today would be expected to show, in steps of 10: math plus reading and writing. It is an
        estimate from practice answers, not a test result.
      </Stat>
      <Stat
        label={`In ${plural(days, 'day')}`}
        value={predictedIn(of, 'total', days)}
        note={`${percent(level)} interval ${intervals.total.low} to ${intervals.total.high}`}
      >
        If practice goes on as in the last 14 days. In {percent(level)} of such cases a test on that day is
        expected to fall inside the interval; a test alone varies by about 30 points.
      </Stat>
      <SectionTile of={of} section="math" />
      <SectionTile of={of} section="rw" />
      <Stat
        label="Expected share right"
        value={percent(share.share)}
        note={`${percent(level)} interval ${percent(share.low)} to ${percent(share.high)}`}
      >
        The share of the next {plural(share.answers, 'answer')}, those of about {plural(days, 'day')}, that is
        expected to be right. It is checked against what truly came: see the page Model.
      </Stat>
    </Stats>
  );
}

function SectionTile({ of, section }: { readonly of: Prediction; readonly section: 'math' | 'rw' }) {
  const { low, high } = of.confidence_intervals[section];
  const practice = of.assumed_practice[section];
  const reliability = of.reliability[section];
  const answers = of.data_points[section];
  return (
    <Stat
      label={`${measures[section]} now`}
      value={of[`current_${section}`]}
      note={<Evidence reliability={reliability} answers={answers} />}
      look={strengthOf(reliability).isThin ? 'alert' : undefined}
    >
      In {plural(of.forecast_days, 'day')}: {predictedIn(of, section, of.forecast_days)} ({low} to {high}).
      Reliability is the share of the estimate that comes from this learner's own {plural(answers, 'answer')}:
      at 0 % it is what is usual for everybody. An answer on a skill of no section counts half in each.
      Assumed practice: {decimal(1)(practice.answers_per_day)} answers a day, active on{' '}
      {decimal(1)(practice.active_days_14)} of 14 days.
    </Stat>
  );
}
